export { clean, cleanJson, cleanLines } from '../../core/text/clean.js'
