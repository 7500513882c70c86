import { ground } from '../../work/grounds/sqlite.js'
import { describeAudit } from './audit-suite.js'

describeAudit('SQLite', () => ground.open())
