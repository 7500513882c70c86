// In the CommonJS build this is own-module.js (scripts/lib/build.mjs). The compiler would turn `import()` into `require` here,
// which knows no URLs, and cannot load every ES module.
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

const dist = join(__dirname, '../../../')
// A package finds its own doors from where its package.json is.
const requireDoor = createRequire(join(dist, '../package.json'))

exports.buildFolder = pathToFileURL(dist)

exports.requireModule = require

/** @param {string} specifier */
exports.importModule = async (specifier) => (specifier.startsWith('file:') ? import(specifier) : requireDoor(specifier))
