/** Work that a person begins: whether it runs, and what was wrong with it the last time. */
import { useState } from 'react';

export function useWork<Problem>(problemOf: (error: unknown) => Problem) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const run = async (work: () => Promise<unknown>) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setBusy(false);
    }
  };
  return { busy, problem, setProblem, run };
}
