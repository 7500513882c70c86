import { describe, expect, it } from 'vitest'
import { memoryPubSub } from '../../../src/backends/memory/pubsub.js'

describe('a subscriber', () => {
  // S08
  it('receives what is published until it unsubscribes, however often it does that', () => {
    const { publish, subscribe } = memoryPubSub()
    const received: string[] = []
    const unsubscribe = subscribe((message) => received.push(message))

    publish('a')
    unsubscribe()
    unsubscribe()
    publish('b')

    expect(received).toEqual(['a'])
  })

  // S09 W29
  it('that throws stops neither the others nor the publisher', () => {
    const pubsub = memoryPubSub()
    const received: string[] = []
    pubsub.subscribe(() => {
      throw new Error('mine')
    })
    pubsub.subscribe((message) => received.push(message))

    expect(() => pubsub.publish('a')).not.toThrow()
    expect(received).toEqual(['a'])
  })

  it('that joins during a delivery receives only the next message, and one that leaves receives no more', () => {
    const pubsub = memoryPubSub()
    const received: string[] = []
    pubsub.subscribe((message) => {
      if (message === 'a') pubsub.subscribe((later) => received.push(`late ${later}`))
      leave()
    })
    const leave = pubsub.subscribe((message) => received.push(`leaver ${message}`))

    pubsub.publish('a')
    pubsub.publish('b')

    expect(received).toEqual(['late b'])
  })

  it('may be subscribed twice and unsubscribed once', () => {
    const pubsub = memoryPubSub()
    let received = 0
    const count = () => {
      received += 1
    }
    const unsubscribe = pubsub.subscribe(count)
    pubsub.subscribe(count)
    unsubscribe()
    pubsub.publish('a')

    expect(received).toBe(1)
  })

  it('has to be a function', () => {
    expect(() => memoryPubSub().subscribe('loud' as never)).toThrow(
      /subscribe\(listener\) must be a function, got "loud"/,
    )
  })
})
