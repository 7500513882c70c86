import { memoryBackend } from '../../../src/index.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { describeAudit } from './audit-suite.js'

describeAudit('memory', () => {
  const clock = new FakeClock()
  return { backend: memoryBackend({ clock }), clock, close: async () => undefined }
})
