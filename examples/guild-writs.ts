// Writs stay owed until they end. A day in a bakery: an order with its parts, one part that gets stuck and goes on, one order
// whose part fails, and what becomes of the rest. It needs no server. Run it with: npx tsx examples/guild-writs.ts
import { createGuild, guild, type PluginSource } from 'millrace/guild'
import { type ClerkApi, shortWritId, type WritDoc } from 'millrace/guild/clerk'
import type { StacksApi } from 'millrace/guild/stacks'

/** A plugin that tells of every step, after it has been committed. */
const teller: PluginSource = {
  package: 'teller-apparatus',
  plugin: {
    apparatus: {
      requires: ['stacks', 'clerk'],
      start: () => {
        const stacks = guild().apparatus<StacksApi>('stacks')
        stacks.watch<WritDoc>(
          'clerk',
          'writs',
          (event) => {
            if (event.type === 'create') console.log(`   ${event.entry.title}: ${event.entry.phase}`)
            if (event.type !== 'update' || event.prev.phase === event.entry.phase) return
            const { title, phase, resolution } = event.entry
            console.log(
              `   ${title}: ${event.prev.phase} → ${phase}${resolution === undefined ? '' : ` (${resolution})`}`,
            )
          },
          { failOnError: false },
        )
      },
    },
  },
}

const g = await createGuild({
  config: { plugins: ['stacks', 'clerk'], stacks: { backend: 'memory' } },
  plugins: [teller],
})
const clerk = g.apparatus<ClerkApi>('clerk')
const post = (title: string, parent?: WritDoc) =>
  clerk.post({ title, body: '', ...(parent === undefined ? {} : { parentId: parent.id }) })

console.log("1. Ada's order and its parts:")
const order = await post("Ada's order")
const rye = await post('rye', order)
const pretzels = await post('pretzels', order)
await clerk.transition(rye.id, 'stuck', { resolution: 'the oven is cold' })
await clerk.transition(pretzels.id, 'completed', { resolution: 'baked' })
await clerk.transition(rye.id, 'open')
await clerk.transition(rye.id, 'completed', { resolution: 'baked at last' })

console.log("2. Grace's order, of which one part fails:")
const other = await post("Grace's order")
const cake = await post('cake', other)
const icing = await post('icing', cake)
const tea = await post('tea', other)
await clerk.link(icing.id, cake.id, 'dependsOn')
await clerk.transition(tea.id, 'failed', { resolution: 'we do not sell tea' })

console.log('3. What cannot be:')
await clerk.transition(icing.id, 'open').catch((error: Error) => console.log(`   ${nameless(error.message)}`))
const { outbound } = await clerk.links(icing.id)
for (const { label } of outbound) console.log(`   icing ${label} cake`)
console.log(`   ${await clerk.count({ phase: ['new', 'open', 'stuck'] })} writs are owed.`)
await g.shutdown()

function nameless(message: string): string {
  return message.replace(icing.id, `${shortWritId(icing.id).slice(0, 2)}…`)
}
