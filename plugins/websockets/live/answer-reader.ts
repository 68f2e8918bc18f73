/** The texts and the sound of answers in Gemini Live. A message with several of them is taken apart. */
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../../core/json/json.ts';
import {
  type AnswerReader,
  type AnswerReading,
  jsonOf,
  messageOf,
  passing,
  type Step,
  sending,
} from '../relay/answers/reading.ts';
import type { Message } from '../relay/upstream.ts';

/** What has come of them is decided: a call of a tool must not wait for it. */
const closed: readonly Step[] = ['text', 'thinking', 'transcript'].map((block) => ({ does: 'close', block }));

export class LiveAnswers implements AnswerReader {
  #turn = 0;

  read(message: Message): AnswerReading | undefined {
    const json = jsonOf(message);
    if (json === undefined) return undefined;
    const content = objectOf(json['serverContent']);
    const calls = objectOf(json['toolCall']);
    if (content === undefined && calls === undefined) return { answer: undefined, steps: [passing(message)] };
    const answer = `turn ${this.#turn}`;
    const ends = content?.['turnComplete'] === true;
    if (ends) this.#turn++;
    const { toolCall: _calls, ...others } = json;
    const steps = content === undefined ? [] : contentSteps(message, others, content);
    return { answer, ends, steps: calls === undefined ? steps : [...steps, ...closed, callStep(message, json, calls)] };
  }
}

/** The last one is the message without what the others have. */
function contentSteps(message: Message, json: JsonObject, content: JsonObject): readonly Step[] {
  const { modelTurn, outputTranscription: words, ...rest } = content;
  const turn = objectOf(modelTurn);
  const parts = listOf(turn?.['parts']).filter(isObject);
  const steps: Step[] = parts.map((part) =>
    partStep(part, (made) => messageOf({ serverContent: { modelTurn: { ...turn, parts: [made] } } }, message)),
  );
  const said = objectOf(words);
  if (said !== undefined) {
    const written = (text: string) => messageOf({ serverContent: { outputTranscription: { ...said, text } } }, message);
    const text = textOf(said['text']) ?? '';
    steps.push({ does: 'grow', block: 'transcript', kind: 'transcript', text, message: written(text), written });
  }
  if (content['interrupted'] === true) steps.push({ does: 'drop' }, ...closed);
  if (content['generationComplete'] === true) steps.push(...closed.slice(0, 2));
  const others = Object.keys(rest).length > 0 || Object.keys(json).length > 1;
  if (steps.length === 0) return [passing(message)];
  return others ? [...steps, passing(messageOf({ ...json, serverContent: rest }, message))] : steps;
}

function partStep(part: JsonObject, written: (part: JsonObject) => Message): Step {
  const message = written(part);
  const text = textOf(part['text']);
  if (text !== undefined) {
    const kind = part['thought'] === true ? 'thinking' : 'text';
    return { does: 'grow', block: kind, kind, text, message, written: (made) => written({ ...part, text: made }) };
  }
  if ('inlineData' in part) return { does: 'sound', block: 'transcript', message };
  return sending(message, { part });
}

function callStep(message: Message, json: JsonObject, calls: JsonObject): Step {
  const { serverContent: _content, ...rest } = json;
  const own = 'serverContent' in json ? messageOf(rest, message) : message;
  const all = listOf(calls['functionCalls']).filter(isObject);
  const argumentsOf = ({ args = {} }: JsonObject) => JSON.stringify(args);
  return {
    does: 'send',
    texts: all.map((call) => ({ kind: 'arguments', text: argumentsOf(call) })),
    written(shown) {
      const made = all.map((call) => {
        const [text, by] = [argumentsOf(call), shown(argumentsOf(call))];
        return by === text ? call : { ...call, args: tryParse(by) };
      });
      const isSame = made.every((call, index) => call === all[index]);
      return isSame ? own : messageOf({ ...rest, toolCall: { ...calls, functionCalls: made } }, message);
    },
  };
}
