/** Settings of the protocols and their translation. */
import { count, duration, secretList, size, z } from '../../core/contract/schema.ts';

export const stateSchema = z.strictObject({
  keep: duration()
    .prefault('24h')
    .describe(
      'How long answers of the responses protocol and conversations can be continued, read and listed; 0s: they are not kept. Raise it when clients come back after a day.',
    ),
  keep_ids: duration()
    .prefault('30d')
    .describe(
      'How long ids of files, containers and the like are known that vendors issued in an answer, so that the same account may use them again. Raise it for vendors that keep such objects longer.',
    ),
  max_bytes: size()
    .prefault(4 * 2 ** 20)
    .describe(
      'Largest conversation, as JSON, that is kept; the answer of a larger one cannot be continued by its id. Raise it for conversations with images.',
    ),
  memory: size()
    .prefault(64 * 2 ** 20)
    .describe(
      'Memory for answers that were kept or asked for last; without a database no others are kept. Raise it on machines with much memory.',
    ),
});

export type StateConfig = z.output<typeof stateSchema>;

export const configSchema = z.strictObject({
  expose: z
    .array(z.string())
    .optional()
    .describe(
      'Protocols whose endpoints this gateway offers: chat, responses, messages, gemini, and those of plugins. Set it to offer fewer. Default: all.',
    ),
  on_loss: z
    .enum(['report', 'refuse'])
    .default('report')
    .describe(
      'What happens to request fields that the target does not take: "report" leaves them out and names them in the header x-gateway-dropped, "refuse" answers with an error. Use refuse when a silent difference is worse than an error.',
    ),
  answer_model: z
    .enum(['vendor', 'asked'])
    .default('vendor')
    .describe(
      `The model's name in answers of a vendor that speaks the client's protocol: "vendor" keeps the vendor's bytes, "asked" writes the name that the client has asked for. Use asked when clients compare the names.`,
    ),
  translated_values: count()
    .refine((value) => value >= 1_000, 'must be at least 1000')
    .prefault(25_000)
    .describe(
      'Members and elements, at all depths, in a request that is translated to another protocol, and in the arguments of its tool calls; more are refused. Raise it for very long conversations, at the price of longer turns of the event loop.',
    ),
  seal_secret: secretList(16)
    .default([])
    .describe(
      "Secret that vendors' signatures are sealed with before they go to clients, or a list: the first seals, all open; empty: made once and kept in the database, without one in the data directory. Set it to the same for all processes of a gateway.",
    ),
  state: stateSchema
    .prefault({})
    .describe('How answers of the responses protocol are kept that clients come back to by id.'),
  media: z
    .strictObject({
      fetch: z
        .boolean()
        .default(true)
        .describe(
          'Fetch media given by URL for models that take only bytes. Turn it off where the gateway should open no address of a client.',
        ),
      max_bytes: size()
        .prefault('20MB')
        .describe(
          'Largest medium that is fetched, and largest uploaded file that a request may name. Raise it for large documents.',
        ),
      timeout: duration().prefault('20s').describe('Time in which a medium must have come. Raise it for slow servers.'),
      per_request: count()
        .prefault(20)
        .describe(
          'Most media that are fetched for one request, and most uploaded files that it may name. Raise it for long conversations with pictures.',
        ),
      allow_private: z
        .boolean()
        .default(false)
        .describe(
          'Fetch from private addresses too. Turn it on for tests alone, as clients could read internal content.',
        ),
    })
    .prefault({})
    .describe(
      'How media are fetched that clients give by URL, and the bounds of those that they give by the id of an uploaded file.',
    ),
});

export type ProtocolConvertConfig = z.output<typeof configSchema>;
