/** Whatever a stream of InvokeModel counts, and however it is cut: its usage is read, from its events or from its metrics. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claude } from '../../../plugins/bedrock/claude.ts';
import { CompletionUsageMeter } from '../../../plugins/bedrock/completions.ts';
import { llama } from '../../../plugins/bedrock/llama.ts';
import { mistral, mistralText } from '../../../plugins/bedrock/mistral.ts';
import { nova } from '../../../plugins/bedrock/nova.ts';
import { ConverseUsageMeter } from '../../../plugins/bedrock/usage-meter.ts';
import type { Usage } from '../../../plugins/common/domain/usage.ts';
import type { Framing } from '../../../plugins/common/wire/protocols.ts';
import type { UsageMeter } from '../../../plugins/common/wire/usage-meter.ts';
import { MessagesUsageMeter } from '../../../plugins/protocol-convert/protocols/messages/usage-meter.ts';
import { fc } from '../../helpers/properties.ts';
import type { Play, PlayUsage } from '../../matrix/scenario.ts';
import { event } from './event-messages.ts';
import { chunksOf, metricsOf, models } from './invoke-formats.ts';

interface Format {
  readonly framing: Framing;
  createUsageMeter(): UsageMeter;
}
const createUsageMeter = () => new CompletionUsageMeter({});
const formats: Record<string, Format> = {
  [models.claude]: { framing: claude.framing!, createUsageMeter: () => new MessagesUsageMeter() },
  [models.nova]: { framing: nova.framing!, createUsageMeter: () => new ConverseUsageMeter() },
  [models.llama]: { framing: llama.framing!, createUsageMeter },
  [models.mistral]: { framing: mistral.framing!, createUsageMeter },
  [models['mistral-text']]: { framing: mistralText.framing!, createUsageMeter },
};
const cached: readonly string[] = [models.claude, models.nova];

const count = fc.integer({ min: 0, max: 10_000_000 });
const usages: fc.Arbitrary<PlayUsage> = fc
  .record({ fresh: count, cacheRead: count, cacheWrite: count, output: count })
  .map(({ fresh, cacheRead, cacheWrite, output }) => ({
    ...{ cacheRead, cacheWrite, output, reasoning: 0 },
    input: fresh + cacheRead + cacheWrite,
  }));

for (const [model, { framing, createUsageMeter }] of Object.entries(formats))
  test(`the usage of a stream of ${model} is read`, () => {
    fc.assert(
      fc.property(usages, fc.boolean(), fc.integer({ min: 1, max: 5_000 }), (counted, isBeside, size) => {
        const usage = cached.includes(model)
          ? counted
          : { ...counted, input: counted.input - counted.cacheRead - counted.cacheWrite, cacheRead: 0, cacheWrite: 0 };
        const play: Play = { text: 'Grüß Gott.', meaning: 'stop', usage };
        const meter = createUsageMeter();
        const verdicts: string[] = [];
        const reader = framing.createReader((raw) => void verdicts.push(meter.frame(raw)));
        const bytes = Buffer.concat(messagesOf(chunksOf(model, play), play, isBeside));
        for (let at = 0; at < bytes.length; at += size) reader.feed(bytes.subarray(at, at + size));
        assert.ok(meter.complete);
        assert.equal(verdicts.at(-1), 'last');
        assert.deepEqual(nonzero(meter.reading.usage), nonzero(expected(usage)));
        assert.ok(meter.reading.hasInput && meter.reading.hasOutput);
      }),
      { numRuns: 300 },
    );
  });

/** `isBeside`: only the metrics of the last chunk count. */
function messagesOf(chunks: readonly string[], play: Play, isBeside: boolean): Buffer[] {
  return chunks.map((text, index) => {
    const chunk = JSON.parse(text, (name, value: unknown) =>
      isBeside && /^usage$|_token_count$/.test(name) ? undefined : value,
    ) as object;
    const metrics = index === chunks.length - 1 && { 'amazon-bedrock-invocationMetrics': metricsOf(play) };
    return event('chunk', { bytes: Buffer.from(JSON.stringify({ ...chunk, ...metrics })).toString('base64') });
  });
}

function expected({ input, cacheRead, cacheWrite, output }: PlayUsage): Usage {
  return { input: input - cacheRead - cacheWrite, cache_read: cacheRead, cache_write_5m: cacheWrite, output };
}

function nonzero(usage: Usage): object {
  return Object.fromEntries(Object.entries(usage).filter(([, tokens]) => tokens !== 0));
}
