/** The bridge between streams and work: messages become items, and results become messages, each once. */
export { type Pipe, type PipedWork, type PipeOptions, type PipeSummary, pipe } from './pipe.js'
export {
  NothingToPublishError,
  type PublishResultsOptions,
  publishResults,
  type ResultsInput,
} from './publish-results.js'
