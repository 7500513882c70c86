import { describeAgainstModel } from '../against-model.js'
import { postgresStore } from './store.js'

describeAgainstModel('PostgreSQL', postgresStore)
