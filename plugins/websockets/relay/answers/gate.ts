/** Answers of a session under checks: texts leave when they are judged, sound when its words are, and what was refused is dropped. */
import type { Host } from '../../../../core/contract/contract.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Event } from '../../../common/canonical/reply.ts';
import { type SessionAnswer, type SessionChecks, sessionGuard } from '../../../common/guardrails/sessions.ts';
import type { Opening } from '../charges.ts';
import type { Message } from '../upstream.ts';
import type { AnswerReader, AnswerReading, BlockKind, Growth, Step, WholeText } from './reading.ts';

/** Bytes of sound that wait in one session. */
const mostSoundBytes = 32 * 2 ** 20;
/** Answers and their items that are remembered after they were refused. */
const mostRefused = 1_000;
/** Texts of one answer that have their verdict, and its items. */
const mostTexts = 10_000;
/** Characters of one answer, and answers that run at once. */
const mostCharacters = 8 * 2 ** 20;
const mostRunning = 100;

/** Whether so many bytes more may be kept for the account; negative: they are kept no more. */
type Keep = (bytes: number) => boolean;
type Send = (message: Message) => Promise<void> | undefined;

interface Block {
  readonly number: number;
  readonly kind: BlockKind;
  raw: string;
  shown: string;
}

interface Answer {
  readonly checks: SessionAnswer;
  readonly blocks: Map<string, Block>;
  /** Texts that are judged, with what is shown for them once that has left. */
  readonly judged: Map<string, string>;
  readonly sounds: Map<string, Message[]>;
  /** Words of their sound have come. */
  readonly spelled: Set<string>;
  readonly items: Set<string>;
  numbers: number;
  /** All of its texts so far. */
  characters: number;
}

/** What an event of the checks stands for. */
type Carried = Event & { readonly of?: Block; readonly step?: Step; readonly sound?: readonly Message[] };

/** undefined: no check of answers applies. */
export function gateOf(
  host: Pick<Host, 'find'>,
  { caller, head, dialect }: Opening,
  model: string,
  keep: Keep,
): AnswerGate | undefined {
  const checks = host.find(sessionGuard)?.of({ session: head, caller, operation: 'realtime', model });
  return checks && new AnswerGate(checks, dialect.answers, keep);
}

export class AnswerGate {
  readonly #checks: SessionChecks;
  readonly #reader: AnswerReader;
  readonly #keep: Keep;
  readonly #running = new Map<string, Answer>();
  readonly #refused = new Set<string>();
  #soundBytes = 0;

  constructor(checks: SessionChecks, reader: AnswerReader, keep: Keep) {
    this.#checks = checks;
    this.#reader = reader;
    this.#keep = keep;
  }

  /** Sends what may leave now. `refused`: is given why an answer is refused, once; what follows of it is left out. */
  async deliver(message: Message, send: Send, refused: (error: unknown) => Promise<void> | undefined): Promise<void> {
    let out: readonly Message[];
    try {
      out = await this.#take(message);
    } catch (error) {
      await refused(error);
      // It may be the last one of its answer, without which clients wait.
      out = await this.#take(message).catch(() => []);
    }
    for (const one of out) await send(one);
  }

  async #take(message: Message): Promise<readonly Message[]> {
    const reading = this.#reader.read(message);
    if (reading === undefined) {
      if (this.#checks.allowsUncovered) return [message];
      throw uncovered();
    }
    const { answer: id, item, ends = false, steps } = reading;
    if (id !== undefined && this.#refused.has(id)) {
      if (item !== undefined) this.#refuse(item);
      return ends && this.#reader.refusedEnd !== undefined ? [this.#reader.refusedEnd(message)] : [];
    }
    if (id === undefined && item !== undefined && this.#refused.has(item)) return [];
    if (id === undefined && steps.every(isWithoutAnswers))
      return steps.map((step) => step.written((text) => this.#checks.restored(text)));
    return this.#taken(reading);
  }

  async #taken({ answer: id, item, ends = false, steps }: AnswerReading): Promise<readonly Message[]> {
    const answer = this.#answerOf(id);
    if (item !== undefined && answer.items.size < mostTexts) answer.items.add(item);
    try {
      const out: Message[] = [];
      for (const [index, step] of steps.entries()) {
        if (ends && index === steps.length - 1) out.push(...(await this.#rest(answer)));
        out.push(...(await this.#stepped(answer, step)));
      }
      if (ends || id === undefined) this.#end(id, answer);
      return out;
    } catch (error) {
      for (const name of [id, ...answer.items]) if (name !== undefined) this.#refuse(name);
      this.#end(id, answer);
      throw error;
    }
  }

  #answerOf(id: string | undefined): Answer {
    const answer = (id === undefined ? undefined : this.#running.get(id)) ?? this.#begun();
    if (id === undefined || this.#running.has(id)) return answer;
    if (this.#running.size >= mostRunning) {
      this.#refuse(id);
      throw tooLong();
    }
    this.#running.set(id, answer);
    return answer;
  }

  /** What waits when the answer ends. */
  async #rest(answer: Answer): Promise<readonly Message[]> {
    const out: Message[] = [];
    for (const block of [...answer.blocks.keys()]) out.push(...(await this.#closed(answer, block)));
    for (const block of [...answer.sounds.keys()]) out.push(...this.#unspelled(answer, block));
    return out;
  }

  /** The session is over. */
  close(): void {
    for (const [id, answer] of this.#running) this.#end(id, answer);
  }

  #begun(): Answer {
    return {
      checks: this.#checks.begin(),
      blocks: new Map(),
      judged: new Map(),
      sounds: new Map(),
      spelled: new Set(),
      items: new Set(),
      numbers: 0,
      characters: 0,
    };
  }

  #refuse(name: string): void {
    this.#refused.add(name);
    if (this.#refused.size > mostRefused) for (const oldest of this.#refused) return void this.#refused.delete(oldest);
  }

  #end(id: string | undefined, answer: Answer): void {
    for (const block of answer.sounds.keys()) this.#soundOf(answer, block);
    this.#keep(-answer.characters);
    answer.checks.done();
    if (id !== undefined) this.#running.delete(id);
  }

  async #stepped(answer: Answer, step: Step): Promise<readonly Message[]> {
    switch (step.does) {
      case 'grow':
        return this.#grown(answer, step);
      case 'close':
        return this.#closed(answer, step.block);
      case 'sound':
        return this.#heard(answer, step);
      case 'complete':
        return [...(await this.#closed(answer, step.block)), ...this.#unspelled(answer, step.block)];
      case 'drop':
        for (const block of [...answer.sounds.keys()]) this.#soundOf(answer, block);
        return [];
      case 'send': {
        const out = [];
        for (const text of step.texts) out.push(...(await this.#whole(answer, text)));
        if (step.words !== undefined && step.texts.length > 0) answer.spelled.add(step.words);
        return [...out, ...(await this.#passed(answer, { type: 'message', step } as unknown as Carried))];
      }
    }
  }

  async #grown(answer: Answer, step: Growth): Promise<readonly Message[]> {
    const { block: name, kind, text } = step;
    let of = answer.blocks.get(name);
    if (of === undefined) {
      of = { number: answer.numbers++, kind, raw: '', shown: '' };
      answer.blocks.set(name, of);
    }
    this.#count(answer, text);
    of.raw += text;
    if (kind === 'transcript' && text.trim() !== '') answer.spelled.add(name);
    return this.#passed(answer, { ...deltaOf(of, text), of, step } as Carried);
  }

  async #closed(answer: Answer, name: string): Promise<readonly Message[]> {
    const of = answer.blocks.get(name);
    if (of === undefined) return [];
    answer.blocks.delete(name);
    if (answer.judged.size < mostTexts) answer.judged.set(of.raw, of.raw);
    const sound = answer.spelled.delete(name) ? this.#soundOf(answer, name) : [];
    return this.#passed(answer, { ...endOf(of), of, sound } as Carried);
  }

  /** A text that comes whole, of which no part was judged before. */
  async #whole(answer: Answer, { kind, text }: WholeText): Promise<readonly Message[]> {
    if (answer.judged.has(text)) return [];
    this.#count(answer, text);
    const of: Block = { number: answer.numbers++, kind, raw: text, shown: '' };
    if (answer.judged.size < mostTexts) answer.judged.set(text, text);
    const out = await this.#passed(answer, { ...deltaOf(of, text), of } as Carried);
    return [...out, ...(await this.#passed(answer, { ...endOf(of), of } as Carried))];
  }

  #heard(answer: Answer, { block, message }: Extract<Step, { does: 'sound' }>): readonly Message[] {
    if (!this.#checks.holdsSound) return [message];
    const { length } = message.data;
    if (this.#soundBytes + length > mostSoundBytes || !this.#keep(length)) throw tooMuchSound();
    this.#soundBytes += length;
    answer.sounds.set(block, [...(answer.sounds.get(block) ?? []), message]);
    return [];
  }

  /** Sound without words is sent where the policies allow that. */
  #unspelled(answer: Answer, block: string): readonly Message[] {
    const sound = this.#soundOf(answer, block);
    if (sound.length > 0 && !answer.spelled.has(block) && !this.#checks.allowsUncovered) throw uncovered();
    return sound;
  }

  #soundOf(answer: Answer, block: string): readonly Message[] {
    const sound = answer.sounds.get(block) ?? [];
    answer.sounds.delete(block);
    const bytes = sound.reduce((sum, { data }) => sum + data.length, 0);
    this.#soundBytes -= bytes;
    this.#keep(-bytes);
    return sound;
  }

  /** Texts are kept until their answer ends, since they come again in its last messages. */
  #count(answer: Answer, { length }: string): void {
    if (answer.characters + length > mostCharacters || !this.#keep(length)) throw tooLong();
    answer.characters += length;
  }

  async #passed(answer: Answer, event: Carried): Promise<readonly Message[]> {
    const out = (await answer.checks.event(event)) as readonly Carried[];
    return out.flatMap((one) => this.#left(answer, one));
  }

  /** What leaves for an event that has its verdict. */
  #left({ judged }: Answer, event: Carried): readonly Message[] {
    const { of, step, sound = [] } = event;
    if (step?.does === 'send') return [step.written((text) => judged.get(text) ?? text)];
    if (of === undefined) return [];
    if (!('text' in event)) {
      if (judged.has(of.raw)) judged.set(of.raw, of.shown);
      return sound;
    }
    of.shown += event.text;
    if (of.kind === 'transcript' && !of.raw.startsWith(of.shown)) throw unmaskable();
    if (step?.does !== 'grow') return [];
    return [event.text === step.text ? step.message : step.written(event.text)];
  }
}

function isWithoutAnswers(step: Step): step is Extract<Step, { does: 'send' }> {
  return step.does === 'send' && step.texts.length === 0;
}

const types = { text: 'text', transcript: 'text', thinking: 'reasoning', arguments: 'tool' } as const;

function deltaOf({ number: block, kind }: Block, text: string): object {
  return { type: `${types[kind]}-delta`, block, choice: 0, text, ...(kind === 'transcript' ? { isSpoken: true } : {}) };
}

function endOf({ number: block, kind }: Block): object {
  return { type: `${types[kind]}-end`, block, choice: 0 };
}

/** Words that are not shown would still be heard. */
function unmaskable(): GatewayError {
  return new GatewayError('invalid_request', 'This content is not allowed by the rules of this gateway.', {
    code: 'content_policy_violation',
    shouldRetry: false,
  });
}

function uncovered(): GatewayError {
  const message = 'The rules of this gateway cannot be applied to an answer in sound without a transcript.';
  return new GatewayError('forbidden', message, { code: 'guardrail_not_applicable', shouldRetry: false });
}

function tooLong(): GatewayError {
  return new GatewayError('upstream_failed', 'An answer is too long to be checked.', {
    code: 'answer_too_large',
    shouldRetry: false,
  });
}

function tooMuchSound(): GatewayError {
  return new GatewayError('upstream_failed', 'An answer in sound is too long to be checked.', {
    code: 'answer_too_large',
    shouldRetry: false,
  });
}
