import { expect, it } from 'vitest'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { memoryBackend } from '../../../src/index.js'
import { openActions } from '../../../src/ops/actions/open-actions.js'
import { openAudit } from '../../../src/ops/audit/audit.js'
import { openOpsContext } from '../../../src/ops/context.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { CORRUPTIONS } from './corruptions.js'

const repair = { who: 'ann' }

it.each(CORRUPTIONS.filter(({ code }) => code === 'group-count').map((one) => [one.name, one] as const))(
  'two who repair %s at once correct its count once',
  async (_, corruption) => {
    const clock = new FakeClock()
    const context = openOpsContext(overPlainPorts, memoryBackend({ clock }), { clock })
    const site = {
      context,
      actions: openActions(context),
      type: 'plain',
      now: () => clock.now(),
      pretend: async () => undefined,
    }
    const { about } = await corruption.seed(site, 'g')
    const { audit } = openAudit(context)
    const [one, other] = await Promise.all([audit({ repair }), audit({ repair })])
    expect(one.findings.concat(other.findings).filter(({ isRepaired }) => isRepaired)).toHaveLength(1)

    expect((await audit()).findings, `what is left to say of ${about}`).toEqual([])
  },
)
