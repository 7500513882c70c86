import { memoryBackend } from 'millrace'
import { openFile, temporaryFile } from '../../backends/sqlite/open-file.js'
import { describeQueueStreams } from './queue-streams-suite.js'

describeQueueStreams('memory', () => {
  // There is one process: to its consumers a restart is another inlet.
  const backend = memoryBackend()
  return { connect: () => backend, close: () => backend.close() }
})

describeQueueStreams('SQLite', () => {
  const file = temporaryFile()
  return { connect: () => openFile({ file }), close: async () => undefined }
})
