/** The longest turn of this process's event loop, in processor time of its main thread: other processes' share of the cores is not in it. */

const { threadCpuUsage } = process as unknown as { threadCpuUsage(): { user: number; system: number } };

export class LongestTurn {
  #longestUs = 0;
  #last = usedUs();

  constructor() {
    const look = () => {
      const now = usedUs();
      this.#longestUs = Math.max(this.#longestUs, now - this.#last);
      this.#last = now;
      setImmediate(look);
    };
    setImmediate(look);
  }

  /** Milliseconds since the last call. */
  takeMs(): number {
    const longest = this.#longestUs / 1_000;
    this.#longestUs = 0;
    return longest;
  }
}

function usedUs(): number {
  const { user, system } = threadCpuUsage.call(process);
  return user + system;
}
