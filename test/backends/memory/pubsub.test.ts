import { describe, expect, it } from 'vitest'
import { memoryPubSub } from '../../../src/backends/memory/pubsub.js'

describe('a subscriber', () => {
  it('S08 hears what is published until it unsubscribes, however often it does that', () => {
    const { publish, subscribe } = memoryPubSub()
    const heard: string[] = []
    const unsubscribe = subscribe((message) => heard.push(message))

    publish('a')
    unsubscribe()
    unsubscribe()
    publish('b')

    expect(heard).toEqual(['a'])
  })

  it('S09 W29 that throws stops neither the others nor the publisher', () => {
    const pubsub = memoryPubSub()
    const heard: string[] = []
    pubsub.subscribe(() => {
      throw new Error('mine')
    })
    pubsub.subscribe((message) => heard.push(message))

    expect(() => pubsub.publish('a')).not.toThrow()
    expect(heard).toEqual(['a'])
  })

  it('that joins during a delivery hears only the next one, and one that leaves hears no more', () => {
    const pubsub = memoryPubSub()
    const heard: string[] = []
    pubsub.subscribe((message) => {
      if (message === 'a') pubsub.subscribe((later) => heard.push(`late ${later}`))
      leave()
    })
    const leave = pubsub.subscribe((message) => heard.push(`leaver ${message}`))

    pubsub.publish('a')
    pubsub.publish('b')

    expect(heard).toEqual(['late b'])
  })

  it('may be subscribed twice and unsubscribed once', () => {
    const pubsub = memoryPubSub()
    let heard = 0
    const hear = () => {
      heard += 1
    }
    const unsubscribe = pubsub.subscribe(hear)
    pubsub.subscribe(hear)
    unsubscribe()
    pubsub.publish('a')

    expect(heard).toBe(1)
  })

  it('has to be a function', () => {
    expect(() => memoryPubSub().subscribe('loud' as never)).toThrow(
      /subscribe\(listener\) must be a function, got "loud"/,
    )
  })
})
