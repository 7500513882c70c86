import { describeAgainstModel } from '../against-model.js'
import { redisStore } from './store.js'

describeAgainstModel('Redis', redisStore)
