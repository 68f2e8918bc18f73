/** Checks of the answers of sessions, which are messages and no exchanges: the service that sessions ask. Types alone. */
import { defineService } from '../../../core/contract/contract.ts';
import type { Caller } from '../domain/accounts.ts';
import type { AnswerTransform } from '../wire/call-transforms.ts';
import type { OpenSession } from '../wire/prompt-rules.ts';

/**
 * The checks of one answer, which put back what stands for texts of the client's messages. It gets deltas and ends of blocks, those of the words
 * of sound with `isSpoken`; any other object passes as it came, in its turn.
 */
export interface SessionAnswer extends Pick<AnswerTransform, 'event'> {
  /** Nothing more of it comes: what was found is kept. */
  done(): void;
}

export interface SessionChecks {
  /** What nothing shows the words of may be sent all the same. */
  readonly allowsUncovered: boolean;
  /** Sound waits for the verdict about its transcript. */
  readonly holdsSound: boolean;
  /** A text that the vendor repeats as it got it from the client. */
  restored(text: string): string;
  begin(): SessionAnswer;
}

export interface SessionGuard {
  /** undefined: no check of answers applies. */
  of(session: {
    /** As rules for prompts get it with each message. */
    readonly session: OpenSession;
    readonly caller: Caller | undefined;
    readonly operation: string;
    readonly model: string;
  }): SessionChecks | undefined;
}

/** Provided by `guardrails`. */
export const sessionGuard = defineService<SessionGuard>('session guard');

/** Operations with sessions that ask the service for each answer. */
export const guardedSessions: ReadonlySet<string> = new Set(['realtime']);
