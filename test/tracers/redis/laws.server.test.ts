import { describeLaws } from '../laws.js'
import { redisStore } from './store.js'

describeLaws('Redis', redisStore)
