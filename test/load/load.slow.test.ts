import { describeLoad } from './selection.js'

describeLoad('memory')
describeLoad('sqlite')
