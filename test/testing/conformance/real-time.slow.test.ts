import { describe, it } from 'vitest'
import { memoryBackend } from '../../../src/backends/memory/index.js'
import { describeBackend } from '../../../src/testing/conformance/index.js'

// The suites as a backend runs them whose time cannot be replaced: nothing is injected, and every clause really waits.
describeBackend({
  name: 'memory in real time',
  test: { describe, it },
  open: () => memoryBackend(),
  realTime: true,
  // Long beside what a busy machine may keep a timer waiting for.
  tickMs: 120,
})
