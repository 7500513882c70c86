import { openBullMq } from './bullmq.mjs'
import { openGraphileWorker } from './graphile-worker.mjs'
import { openMillrace } from './millrace.mjs'
import { openPgBoss } from './pg-boss.mjs'
import { openPlainQueue } from './plain-queue.mjs'
import { openPlainjob } from './plainjob.mjs'

/** @type {Readonly<Record<string, import('./contender.js').OpenContender>>} */
export const CONTENDERS = Object.freeze({
  millrace: openMillrace,
  'plain queue': openPlainQueue,
  plainjob: openPlainjob,
  bullmq: openBullMq,
  'graphile-worker': openGraphileWorker,
  'pg-boss': openPgBoss,
})
