/** What sinks with an address have in their sections. */
import { z } from '../../../core/contract/schema.ts';

export const address = z.url({ protocol: /^https?$/ });
export const allowPrivate = z
  .boolean()
  .default(false)
  .describe(
    'The address may lie in a private network or on this machine. Turn it on for receivers of your own network.',
  );
