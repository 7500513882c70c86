/** How many rigs a writ may have before it stays stuck. Displays read it from `maxAttempts`. */
export const MAX_RETRY_ATTEMPTS = 2
