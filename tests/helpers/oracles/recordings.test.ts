/** What the official clients make of what vendors themselves have answered: all of a protocol understand the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Oracle, streamOracles, type Understood, wholeOracles } from '../oracles.ts';
import { families, type Recording, recordings } from '../recordings.ts';
import { countedIn } from '../replay.ts';
import { departures, differences } from './recordings-exceptions.ts';

const metered = ['input', 'output', 'reasoning', 'cacheRead'] as const;

for (const family of families) {
  test(`every client of ${family} reads the vendors' recorded answers with the same result`, async () => {
    let understoodCount = 0;
    const departed = new Set<string>();
    for (const recording of recordings(family).filter(isAnswer)) {
      const understood: [Oracle, Understood][] = [];
      for (const oracle of (recording.isStream ? streamOracles : wholeOracles)[family]) {
        const answer = { body: recording.response, contentType: contentTypeOf(recording) };
        const departure = departures[recording.name]?.find(([name]) => name === oracle.name || name === 'all');
        const where = `${recording.name}, ${oracle.name}`;
        if (departure !== undefined) {
          await assert.rejects(oracle.understand(answer), departure[1], where);
          departed.add(recording.name);
          continue;
        }
        const one = await oracle.understand(answer).catch((error: unknown) => assert.fail(`${where}: ${error}`));
        assertReports(recording, one, where);
        understood.push([oracle, one]);
        understoodCount++;
      }
      assertSame(recording.name, understood);
    }
    assert.ok(understoodCount > 20, `only ${understoodCount} answers were understood`);
    const listed = recordings(family).filter(({ name }) => name in departures);
    assert.deepEqual(
      [...departed],
      listed.map(({ name }) => name),
    );
  });
}

function isAnswer({ status, path }: Recording): boolean {
  return status === 200 && !/countTokens|count_tokens|:embed/.test(path);
}

function contentTypeOf({ contentType, isStream }: Recording): string {
  return contentType ?? (isStream ? 'text/event-stream' : 'application/json');
}

/** It is not empty, and counts what the vendor counted. */
function assertReports(recording: Recording, understood: Understood, where: string): void {
  const { text, reasoning, refusal, tools, images, stop, usage } = understood;
  assert.ok(stop !== undefined, `${where}: no reason to end`);
  const holdsSomething = text + reasoning + refusal !== '' || tools.length + images.length > 0;
  assert.ok(
    holdsSomething || /length|refusal|other/.test(stop) || isPictureOrSound(recording),
    `${where}: nothing was understood`,
  );
  const counted = countedIn(recording);
  if (counted.input !== undefined && usage.input !== undefined)
    assert.equal(usage.input, counted.input, `${where}: input`);
}

/** An image or a sound is an answer that not every client tells. */
function isPictureOrSound({ name }: Recording): boolean {
  return /image-out|audio-out/.test(name);
}

function assertSame(name: string, understood: readonly [Oracle, Understood][]): void {
  const [first, ...others] = understood;
  if (first === undefined) return;
  for (const [oracle, other] of others) {
    const where = `${name}, ${oracle.name}`;
    for (const member of ['text', 'reasoning', 'refusal', 'tools', 'stop', 'images'] as const) {
      if (oracle.blindTo?.includes(member) || differences[name]?.includes(member)) continue;
      assert.deepEqual(comparable(other, member), comparable(first[1], member), `${where}: ${member}`);
    }
    for (const count of metered)
      assert.equal(other.usage[count] ?? 0, first[1].usage[count] ?? 0, `${where}: ${count}`);
  }
}

/** One client makes up ids of calls that came without. */
function comparable(understood: Understood, member: keyof Understood): unknown {
  if (member !== 'tools') return understood[member];
  return understood.tools.map(({ name, arguments: input }) => ({ name, input }));
}
