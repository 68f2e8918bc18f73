/** Every recorded answer in the words of every other protocol: the official clients read the same out of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { departures } from '../helpers/oracles/recordings-exceptions.ts';
import { type Answered, type Oracle, streamOracles, type Understood, wholeOracles } from '../helpers/oracles.ts';
import { type Family, families, type Recording, recordings } from '../helpers/recordings.ts';
import { errorsIn200, keyRefusedBy400 } from '../helpers/relay-rules.ts';
import { countedIn } from '../helpers/replay.ts';
import { seededCuts } from '../helpers/vendor.ts';
import { clients } from '../matrix/clients/index.ts';
import { answerTo, errorTo } from './answer-of-recording.ts';
import { differencesOf, isBeyond, isUnreadable, type Member } from './exceptions.ts';

const answers = (family: Family) => recordings(family).filter(isAnswer);

for (const family of families) {
  for (const client of families) {
    for (const isStream of [false, true]) {
      test(`answers of ${family} vendors have the same content for ${client} clients, ${isStream ? 'streamed' : 'whole'}`, async () => {
        const failed: string[] = [];
        for (const recording of answers(family).filter((one) => client !== family || one.isStream !== isStream)) {
          await check(recording, client, isStream).catch((error: Error) =>
            failed.push(`${recording.name}: ${error.message.slice(0, 400)}`),
          );
        }
        assert.deepEqual(failed, []);
      });
    }

    if (client === family) continue;
    test(`streams of ${family} vendors, cut at 200 places, come out the same for ${client} clients`, async () => {
      for (const recording of answers(family).filter((one) => one.isStream)) {
        const whole = await answerTo(recording, { client, isStream: true });
        const cuts = seededCuts(recording.response.length, 200, recording.response.length);
        const cut = await answerTo(recording, { client, isStream: true, cuts });
        assert.equal(withoutSeals(cut), withoutSeals(whole), recording.name);
      }
    });
  }
}

for (const family of families) {
  for (const client of families.filter((one) => one !== family)) {
    test(`errors of ${family} vendors are encoded for ${client} clients`, async () => {
      const errors = recordings(family).filter(({ status }) => status >= 400);
      assert.ok(errors.length > 3);
      for (const recording of errors) {
        for (const isStream of [false, true]) {
          const { status, body } = await errorTo(recording, { client, isStream });
          const { message, type } = clients[client].readError(body);
          assert.ok(message !== '' && type !== '', recording.name);
          // Refusals of the gateway's own key are not the client's affair; all others keep their status.
          if (![401, 402, 403].includes(recording.status) && !keyRefusedBy400.has(recording.name))
            assert.equal(status, recording.status, recording.name);
          else assert.equal(status, 502, recording.name);
        }
      }
    });
  }
}

/** Each seal is another, whatever is in it; it begins with `gw1.`, which one protocol words in base64. */
function withoutSeals({ body }: Answered): string {
  return String(body).replaceAll(/(?:gw1\.|Z3cxL)[\w+/=-]+/g, 'SEAL');
}

function isAnswer({ status, path, name }: Recording): boolean {
  return (
    status === 200 && !/countTokens|count_tokens|:embed/.test(path) && !errorsIn200.has(name) && !/midstream/.test(name)
  );
}

async function check(recording: Recording, client: Family, isStream: boolean): Promise<void> {
  const oracles = (isStream ? streamOracles : wholeOracles)[client];
  if (isUnreadable(recording)) {
    await assert.rejects(async () => oracles[0]!.understand(await answerTo(recording, { client, isStream })));
    return;
  }
  const translated = await answerTo(recording, { client, isStream });
  const original = await originalOf(recording);
  for (const oracle of oracles.filter(({ name }) => !isBeyond(recording, client, name))) {
    const reported = await oracle
      .understand(translated)
      .catch((error: unknown) => assert.fail(`${oracle.name}: ${error}`));
    if (original !== undefined) assertSame(reported, original, oracle, differencesOf(recording, client, oracle.name));
    assertCounted(reported, recording, oracle.name, client);
  }
}

const originals = new Map<string, Promise<Understood | undefined>>();

/** Read once for all clients that it is compared with. */
function originalOf(recording: Recording): Promise<Understood | undefined> {
  const name = `${recording.family}/${recording.name}`;
  let original = originals.get(name);
  if (original === undefined) {
    original = readOriginal(recording);
    originals.set(name, original);
  }
  return original;
}

/** What the vendor's own official clients read; undefined where the vendor departs so far that none of them can. */
async function readOriginal(recording: Recording): Promise<Understood | undefined> {
  const oracles = (recording.isStream ? streamOracles : wholeOracles)[recording.family];
  const departed = departures[recording.name]?.map(([name]) => name) ?? [];
  if (departed.includes('all')) return undefined;
  const oracle = oracles.find(({ name, blindTo }) => !departed.includes(name) && blindTo === undefined);
  if (oracle === undefined) return undefined;
  const contentType = recording.contentType ?? (recording.isStream ? 'text/event-stream' : 'application/json');
  const answer: Answered = { body: recording.response, contentType };
  return oracle.understand(answer);
}

function assertSame(reported: Understood, original: Understood, oracle: Oracle, differs: ReadonlySet<Member>): void {
  const isBlind = (member: Member) => oracle.blindTo?.includes(member) || differs.has(member);
  if (!isBlind('text')) assert.equal(saidIn(reported), saidIn(original), `${oracle.name}: text`);
  if (!isBlind('reasoning'))
    assert.equal(withoutSpace(reported.reasoning), withoutSpace(original.reasoning), `${oracle.name}: reasoning`);
  if (!isBlind('tools'))
    assert.deepEqual(reported.tools.map(callOf), original.tools.map(callOf), `${oracle.name}: tools`);
  if (!isBlind('stop'))
    assert.ok(stopsOf(original).includes(reported.stop), `${oracle.name}: ${reported.stop}, not ${original.stop}`);
}

/** Parts of a summary are a blank line apart where reasoning is one text. */
function withoutSpace(text: string): string {
  return text.replaceAll(/\s+/g, '');
}

/** Protocols differ in whether refusing words end an answer like any others. */
function stopsOf({ stop, refusal }: Understood): readonly unknown[] {
  return refusal === '' ? [stop] : [stop, 'stop', 'refusal'];
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
