/** Waits for something that goes on by itself, for a limited time. */

/** Rejects with `late()` when the time is over; the awaited work continues, and its outcome is ignored. */
export async function within<T>(ms: number, awaited: Promise<T>, late: () => Error): Promise<T> {
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(() => over.reject(late()), ms);
  try {
    return await Promise.race([awaited, over.promise]);
  } finally {
    clearTimeout(timer);
  }
}
