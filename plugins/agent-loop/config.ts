/** Settings of the plugin: the bounds of a run. */
import { duration, size, z } from '../../core/contract/schema.ts';

export const loopSchema = z.strictObject({
  turns: z
    .int()
    .min(1)
    .max(256)
    .default(16)
    .describe('Calls of the model in one run. Raise it for work of many steps.'),
  calls: z
    .int()
    .min(1)
    .max(1_024)
    .default(64)
    .describe('Calls of tools in one run. Raise it for work that looks many things up.'),
  parallel: z
    .int()
    .min(1)
    .max(64)
    .default(8)
    .describe('Calls of tools that run at once in one run. Lower it to protect slow servers.'),
  deadline: duration()
    .refine((ms) => ms >= 1_000 && ms <= 3_600_000, 'must be from 1s to 1h')
    .prefault('10m')
    .describe('A run that has lasted so long begins no further step. Raise it for slow tools.'),
  result: size()
    .refine((bytes) => bytes >= 1_024 && bytes <= 16 * 2 ** 20, 'must be from 1KB to 16MB')
    .prefault('128KB')
    .describe(
      'Longest result of a tool that a model is given; the rest is cut off. Raise it for models with long prompts.',
    ),
  answer: size()
    .refine((bytes) => bytes >= 65_536 && bytes <= 256 * 2 ** 20, 'must be from 64KB to 256MB')
    .prefault('16MB')
    .describe('Most bytes of the answers of one run, its steps included. Raise it for runs that write much.'),
  tools: z
    .int()
    .min(1)
    .max(512)
    .default(128)
    .describe('Tools that one request may offer to a model. Raise it where a model takes more.'),
  any_server: z
    .boolean()
    .default(false)
    .describe(
      "Requests may name servers of tools at any public address, which the gateway asks with the client's own token, instead of leaving them to the vendor of the model. Set it where clients may send what they ask a model for to servers that you do not know.",
    ),
  per_account: z
    .int()
    .min(1)
    .max(10_000)
    .default(32)
    .describe('Runs of one account at once in one process. Lower it to protect the gateway.'),
});

export type LoopConfig = z.output<typeof loopSchema>;
