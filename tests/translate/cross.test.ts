/** Every recorded answer in the words of every other protocol: the official clients read the same out of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { departures } from '../helpers/oracles/recordings-exceptions.ts';
import { type Answered, type Oracle, streamOracles, type Understood, wholeOracles } from '../helpers/oracles.ts';
import { type Family, families, type Recording, recordings } from '../helpers/recordings.ts';
import { errorsIn200 } from '../helpers/relay-rules.ts';
import { countedIn } from '../helpers/replay.ts';
import { seededCuts } from '../helpers/vendor.ts';
import { answerTo } from './asking.ts';
import { exceptionsOf } from './exceptions.ts';

const answers = (family: Family) => recordings(family).filter(isAnswer);

for (const family of families) {
  for (const client of families.filter((one) => one !== family)) {
    for (const isStream of [false, true]) {
      test(`what ${family} vendors answered reads the same for ${client} clients, ${isStream ? 'streamed' : 'whole'}`, async () => {
        const failed: string[] = [];
        for (const recording of answers(family)) {
          await check(recording, client, isStream).catch((error: Error) =>
            failed.push(`${recording.name}: ${error.message.slice(0, 400)}`),
          );
        }
        assert.deepEqual(failed, []);
      });
    }

    test(`streams of ${family} vendors, cut at 200 places, come out the same for ${client} clients`, async () => {
      for (const recording of answers(family).filter((one) => one.isStream)) {
        const whole = await answerTo(recording, { client, isStream: true });
        const cuts = seededCuts(recording.response.length, 200, recording.response.length);
        const cut = await answerTo(recording, { client, isStream: true, cuts });
        assert.equal(String(cut.body), String(whole.body), recording.name);
      }
    });
  }
}

function isAnswer({ status, path, name }: Recording): boolean {
  return (
    status === 200 && !/countTokens|count_tokens|:embed/.test(path) && !errorsIn200.has(name) && !/midstream/.test(name)
  );
}

async function check(recording: Recording, client: Family, isStream: boolean): Promise<void> {
  const exceptions = exceptionsOf(recording, client, isStream);
  const translating = answerTo(recording, { client, isStream });
  if (exceptions.fails !== undefined) {
    await assert.rejects(translating, exceptions.fails);
    return;
  }
  const translated = await translating;
  const original = await originalOf(recording);
  for (const oracle of (isStream ? streamOracles : wholeOracles)[client]) {
    const told = await oracle.understand(translated).catch((error: unknown) => assert.fail(`${oracle.name}: ${error}`));
    if (original !== undefined) assertSame(told, original, oracle, exceptions.differs);
    assertCounted(told, recording, oracle.name, client);
  }
}

/** What the vendor's own official clients read; undefined where the vendor departs so far that none of them can. */
async function originalOf(recording: Recording): Promise<Understood | undefined> {
  const oracles = (recording.isStream ? streamOracles : wholeOracles)[recording.family];
  const departed = departures[recording.name]?.map(([name]) => name) ?? [];
  if (departed.includes('all')) return undefined;
  const oracle = oracles.find(({ name, blindTo }) => !departed.includes(name) && blindTo === undefined);
  if (oracle === undefined) return undefined;
  const contentType = recording.contentType ?? (recording.isStream ? 'text/event-stream' : 'application/json');
  const answer: Answered = { body: recording.response, contentType };
  return oracle.understand(answer);
}

type Member = 'text' | 'reasoning' | 'refusal' | 'tools' | 'stop' | 'images';

function assertSame(told: Understood, original: Understood, oracle: Oracle, differs: readonly string[]): void {
  const isBlind = (member: Member) => oracle.blindTo?.includes(member) || differs.includes(member);
  if (!isBlind('text')) assert.equal(saidIn(told), saidIn(original), `${oracle.name}: text`);
  if (!isBlind('reasoning')) assert.equal(told.reasoning, original.reasoning, `${oracle.name}: reasoning`);
  if (!isBlind('tools')) assert.deepEqual(told.tools.map(callOf), original.tools.map(callOf), `${oracle.name}: tools`);
  if (!isBlind('stop')) assert.equal(told.stop, original.stop, `${oracle.name}: stop`);
}

/** Some protocols tell a refusal as text. */
function saidIn({ text, refusal }: Understood): string {
  return text + refusal;
}

function callOf({ name, arguments: input }: Understood['tools'][number]): unknown {
  return { name, input };
}

/** As the vendor counted; what it did not count is estimated. */
function assertCounted({ usage }: Understood, recording: Recording, where: string, client: Family): void {
  const counted = countedIn(recording);
  if (counted.input !== undefined) assert.equal(usage.input, counted.input, `${where}: input`);
  if (counted.output !== undefined) assert.equal(usage.output, counted.output, `${where}: output`);
  if (counted.cached !== undefined) assert.equal(usage.cacheRead ?? 0, counted.cached, `${where}: cached`);
  if (counted.reasoning !== undefined && client !== 'messages')
    assert.equal(usage.reasoning ?? 0, counted.reasoning, `${where}: reasoning`);
}
