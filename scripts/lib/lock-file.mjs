/** The lock files of the repository: ours, and that of what the benches compare with. */
export const lockFiles = Object.freeze(['package-lock.json', 'bench/peers/package-lock.json'])

/**
 * @typedef {object} LockedPackage
 * @property {string} [version]
 * @property {string} [integrity]
 * @property {boolean} [dev]
 * @property {boolean} [optional]
 * @property {Record<string, string>} [optionalDependencies]
 * @property {readonly string[]} [os]
 * @property {readonly string[]} [cpu]
 * @property {readonly string[]} [libc]
 */

/** @typedef {Record<string, LockedPackage>} LockedPackages */

/**
 * The builds for other platforms that a package of the lock file offers and the lock file leaves out, as entries to add.
 * npm leaves out what the registry of the moment does not serve, and a mirror often serves one platform only; `npm ci`
 * then refuses the lock file there, and on every platform whose entries are missing. A build's version is that of the package that
 * offers it, and its platform is in its name, so both are known without asking anybody. The checksum is not.
 * @param {LockedPackages} packages
 * @returns {LockedPackages}
 */
export function missingBuilds(packages) {
  /** @type {LockedPackages} */
  const missing = {}
  for (const [path, entry] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      if (isLocked(packages, path, name)) continue
      // Beside the package that offers it, where it cannot stand in the way of another version of itself.
      const folder = path.replace(/node_modules\/(@[^/]+\/)?[^/]+$/, 'node_modules/')
      missing[folder + name] = {
        version: exactVersion(name, version),
        // In npm's own order, so that a later `npm install` changes nothing here.
        ...sorted({ ...platformOf(name), ...(entry.dev ? { dev: true } : {}), optional: true }),
      }
    }
  }
  return missing
}

/** @type {<T extends object>(entry: T) => T} */
const sorted = (entry) => /** @type {any} */ (Object.fromEntries(Object.entries(entry).sort()))

/**
 * Whether `name`, asked for by the package at `path`, is found there or in a folder above.
 * @param {LockedPackages} packages
 * @param {string} path
 * @param {string} name
 */
function isLocked(packages, path, name) {
  let folder = path
  while (folder !== '') {
    if (`${folder}/node_modules/${name}` in packages) return true
    folder = folder.slice(0, folder.lastIndexOf('node_modules/')).replace(/\/$/, '')
  }
  return `node_modules/${name}` in packages
}

/**
 * @param {string} name
 * @param {string} version
 */
function exactVersion(name, version) {
  if (/^\d+\.\d+\.\d+/.test(version)) return version
  throw new Error(`${name}@${version} is not in package-lock.json and its version is not exact: add it by hand.`)
}

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const PROCESSORS = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

/**
 * The platform in a name like `@rolldown/binding-linux-arm64-musl`.
 * @param {string} name
 * @returns {Pick<LockedPackage, 'os' | 'cpu' | 'libc'>}
 */
function platformOf(name) {
  const words = name.split(/[-/]/)
  const os = SYSTEMS.filter((system) => words.includes(system))
  const cpu = PROCESSORS.filter((processor) => words.includes(processor))
  // Without a platform, every machine would fetch it.
  if (cpu.length !== 1 || (os.length !== 1 && cpu[0] !== 'wasm32')) {
    throw new Error(`${name} is not in package-lock.json and its name tells no platform: add it by hand.`)
  }
  const libc = words.some((word) => word.startsWith('musl'))
    ? ['musl']
    : words.some((word) => word.startsWith('gnu'))
      ? ['glibc']
      : []
  return { cpu, ...(libc.length > 0 ? { libc } : {}), ...(os.length > 0 ? { os } : {}) }
}
