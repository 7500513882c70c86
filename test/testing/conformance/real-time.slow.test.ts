import { describe, it } from 'vitest'
import { memoryBackend } from '../../../src/backends/memory/index.js'
import { describeBackend } from '../../../src/testing/conformance/describe-backend.js'

// The suites as a backend runs them whose time cannot be replaced: nothing is injected, and every clause really waits.
describeBackend({
  name: 'memory in real time',
  // Side by side, since they do little but wait; each has a backend of its own.
  test: { describe, it: it.concurrent },
  open: () => memoryBackend(),
  realTime: true,
  // Long beside what a busy machine may keep a timer waiting for.
  tickMs: 120,
})
