/** Faults in what is read of a request beside its conversation: models that it names. */
import type { Mutant } from './mutants.ts';

export const namedMutants: Readonly<Record<string, Mutant>> = {
  'fallbacks-unread': {
    summary: 'a model among the fallbacks of a request is not read',
    reads: ({ fallbacks: _unread, models: _neither, ...json }) => json,
  },
  'tools-unread': {
    summary: 'a model in the settings of a tool is not read',
    reads: ({ tools: _unread, ...json }) => json,
  },
};
