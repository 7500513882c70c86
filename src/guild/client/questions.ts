import { OptionError, optionsObject, stringOption } from '../../core/options.js'
import { lostInJson } from '../fabricator/yields.js'
import type { InputRequestDoc, RigRow } from '../spider/rigs/rig.js'
import type { StacksApi } from '../stacks/api.js'
import { QuestionClosedError, QuestionNotFoundError } from './errors.js'

/** Which questions. */
export interface QuestionFilter {
  /** Those of one writ. Default: of all. */
  readonly writId?: string
}

/** How many questions are read at most. */
const MOST = 1_000

/** Questions of engines that have no answer yet. */
export async function openQuestions(stacks: StacksApi, filter: QuestionFilter | undefined): Promise<InputRequestDoc[]> {
  const { writId } = optionsObject<QuestionFilter>('questions()', filter, ['writId'])
  const pending = ['status', '=', 'pending'] as const
  const requests = stacks.readBook<InputRequestDoc>('spider', 'input-requests')
  const orderBy = ['id', 'asc'] as const
  if (writId === undefined) return requests.find({ where: [pending], orderBy, limit: MOST })
  const ofWrit = [['writId', '=', stringOption('questions().writId', writId)]] as const
  const rigs = await stacks.readBook<RigRow>('spider', 'rigs').find({ where: [...ofWrit] })
  const ofRigs = ['rigId', 'IN', rigs.map(({ id }) => id)] as const
  return rigs.length === 0 ? [] : requests.find({ where: [pending, ofRigs], orderBy, limit: MOST })
}

/** Stores the answers to a question. Of two that answer at the same time one is first, and the other is told. */
export async function answerQuestion(stacks: StacksApi, id: string, answers: unknown): Promise<InputRequestDoc> {
  stringOption('answer(id)', id)
  const lost = answers === undefined ? 'it is undefined' : lostInJson(answers, 'answers')
  if (lost !== undefined) throw new OptionError('answer(answers)', `something that JSON can carry: ${lost}`, answers)
  return stacks.transaction(async () => {
    const found = await stacks.readBook<InputRequestDoc>('spider', 'input-requests').get(id)
    if (found === null) throw new QuestionNotFoundError(id)
    if (found.status !== 'pending') throw new QuestionClosedError(id, found.status, found.message)
    return stacks.book<InputRequestDoc>('spider', 'input-requests').patch(id, { status: 'completed', answers })
  })
}
