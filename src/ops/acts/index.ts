export { type Acts, openActs } from './open-acts.js'
