import { describeLoad } from './selection.js'

describeLoad('postgres')
describeLoad('redis')
