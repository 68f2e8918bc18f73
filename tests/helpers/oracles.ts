/** The official clients as judges of an answer: what each one understands of the bytes, or what it throws. Offline. */
import { aiSdkStreamed, aiSdkWhole } from './oracles/ai-sdk.ts';
import { messagesAccumulated, messagesIterated, messagesWhole } from './oracles/anthropic.ts';
import { geminiIterated, geminiWhole } from './oracles/google.ts';
import { chatAccumulated, chatIterated, chatWhole } from './oracles/openai-chat.ts';
import { responsesAccumulated, responsesIterated, responsesWhole } from './oracles/openai-responses.ts';
import type { Answered, Understood } from './oracles/understood.ts';
import type { Family } from './recordings.ts';

export type {
  Answered,
  Understood,
} from './oracles/understood.ts';

/** Members of an understanding that tell the answer's content. */
type AnswerPart = 'text' | 'reasoning' | 'refusal' | 'tools' | 'stop' | 'images';

export interface Oracle {
  /** `openai accumulated`, `openai iterated`, `ai-sdk` …; unique within a protocol and form. */
  readonly name: string;
  /** Throws what the client throws, or IllegalAnswer when a rule of the protocol is broken. */
  understand(answer: Answered): Promise<Understood>;
  /** What this client never tells, or tells by other means (a refusal as text): not to be compared. */
  readonly blindTo?: readonly AnswerPart[];
}

/** The clients of a protocol that read a stream. The ones called `iterated` hold it against the protocol's rules, too. */
export const streamOracles: Readonly<Record<Family, readonly Oracle[]>> = {
  chat: [
    { name: 'openai accumulated', understand: chatAccumulated },
    { name: 'openai iterated', understand: chatIterated },
    { name: 'ai-sdk', understand: aiSdkStreamed('chat'), blindTo: ['reasoning', 'images'] },
  ],
  responses: [
    { name: 'openai accumulated', understand: responsesAccumulated },
    { name: 'openai iterated', understand: responsesIterated },
    { name: 'ai-sdk', understand: aiSdkStreamed('responses'), blindTo: ['images'] },
  ],
  messages: [
    { name: 'anthropic accumulated', understand: messagesAccumulated },
    { name: 'anthropic iterated', understand: messagesIterated },
    { name: 'ai-sdk', understand: aiSdkStreamed('messages') },
  ],
  gemini: [
    { name: 'google iterated', understand: geminiIterated },
    { name: 'ai-sdk', understand: aiSdkStreamed('gemini') },
  ],
};

/** The clients of a protocol that read a whole answer. */
export const wholeOracles: Readonly<Record<Family, readonly Oracle[]>> = {
  chat: [
    { name: 'openai', understand: chatWhole },
    { name: 'ai-sdk', understand: aiSdkWhole('chat'), blindTo: ['reasoning', 'images'] },
  ],
  responses: [
    { name: 'openai', understand: responsesWhole },
    { name: 'ai-sdk', understand: aiSdkWhole('responses'), blindTo: ['images'] },
  ],
  messages: [
    { name: 'anthropic', understand: messagesWhole },
    { name: 'ai-sdk', understand: aiSdkWhole('messages') },
  ],
  gemini: [
    { name: 'google', understand: geminiWhole },
    { name: 'ai-sdk', understand: aiSdkWhole('gemini') },
  ],
};
