import { describe, expect, it } from 'vitest'
import * as door from '../../src/index.js'
import { namesOf } from '../package/door-names.js'

/** What programs written for `@ayepi/work` import, by value. */
const VALUES = `createWork defineWork defineBatchWork setIdGenerator WorkDelayError RetryAbort retry backoff
  setDefaultRetryOptions getDefaultRetryOptions DEFAULT_RETRY_OPTIONS WORK_METRICS createMetrics formatPrometheus
  DEFAULT_BUCKETS adaptiveDelay defaultCodec memoryQueue memoryPubSub memoryStore memoryBackend unlimitedDoer balancedDoer
  priorityDoer ageDoer dependency conditionMet DEPENDENCY_TYPE parseCron nextAfter work enqueue schedule start stop list
  doWith rateLimitedDoer`

/** And by type. */
const TYPES = `WorkSystem WorkSystemOptions Work WorkResult GroupItem ResultOptions WorkBuilder AnyWorkBuilder WorkHandler
  WorkContext WorkHandle WorkDefinition WorkOptions BatchConfig WorkInstanceOptions WorkState WorkStatus WorkEvent
  WorkAcceptInfo BackpressureContext WorkBacklogInfo FailureDecision FailureClassifier WorkFailureInfo ActiveWork
  UnhandledWorkGroupInfo DependencyCondition DependencyOptions ScheduleConfig WorkDelaySpec InputOf NameOf SelfOf GroupOf
  GroupOfItem GroupOfBuilder SelfOfWork GroupOfWork NonVoidUnion RegistryNames BuilderForName InputForName SelfForName
  GroupForName Queue PubSub Store Backend PulledWork PushOptions JsonCodec MemoryOptions MemoryQueue MemoryQueueOptions
  MemoryQueuePersistence MemoryBackendOptions QueueFsLike DeadLettered Doer DoerTaskOptions BoundedDoerOptions
  UnlimitedDoerOptions RetryOptions RetryState AdaptiveDelay AdaptiveDelayOptions Metrics MetricsOptions Counter Gauge
  Summary StatKind StatMeta StatValue StatSummary StatBucket Labels Clock LogWith DependencyInput BacklogInfo`

const words = (text: string): readonly string[] => text.split(/\s+/)

describe('the doors of work', () => {
  it('export every value that @ayepi/work has, at the front door', () => {
    const absent = words(VALUES).filter((name) => !(name in door))
    expect(absent).toEqual([])
  })

  it('export every type that @ayepi/work has', () => {
    const names = ['', '/types', '/ports', '/metrics'].map((end) => namesOf(`millrace${end}`))
    const absent = words(TYPES).filter((name) => !names.some((door) => door.has(name)))
    expect(absent).toEqual([])
  })
})
