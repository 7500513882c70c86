/** Clockworks-Retry: opens writs again that became stuck for a reason which may pass. */
import type { Plugin } from '../host/plugin.js'
import { createClockworksRetry } from './apparatus.js'

const clockworksRetry: Plugin = createClockworksRetry()

// biome-ignore lint/style/noDefaultExport: a plugin is the default export of its package.
export default clockworksRetry

export type { SpiderWritStatus } from '../spider/dispatch/writ-status.js'
export type { ClockworksRetryApi, RequeueDecision, RetryDescription } from './api.js'
export { type ClockworksRetryOptions, createClockworksRetry } from './apparatus.js'
export { MAX_RETRY_ATTEMPTS } from './cap.js'
export type { ClockworksRetryConfig, RigRetry } from './policy.js'
