// What the web process and the worker agree on: the contracts of the work, without its code.
import { defineContract } from 'millrace'
import { z } from 'zod'

export const orderSchema = z.object({ id: z.string().min(1), tenant: z.string(), cents: z.number().int().positive() })
export type Order = z.infer<typeof orderSchema>

const TENANTS = ['acme', 'globex', 'initech', 'hooli', 'umbrella']

/** One type for each tenant, so that the worker can limit each by itself. */
const charges = new Map(
  TENANTS.map((tenant) => [
    tenant,
    defineContract(`charge/${tenant}`, orderSchema, {
      retry: { attempts: 5, base: 200 },
      tags: [`tenant:${tenant}`],
    }).returns<{ receipt: string }>(),
  ]),
)

export const allCharges = [...charges.values()]

/** The work that charges this tenant's orders. Undefined: there is no such tenant. */
export const chargeOf = (tenant: string) => charges.get(tenant)

/** The id of an order's job says whose it is, and adding it twice adds one. */
export const jobId = ({ tenant, id }: Order) => `${tenant}:${id}`

export const report = defineContract('report').takes<{ readonly day: string }>().returns<{ readonly charged: number }>()
