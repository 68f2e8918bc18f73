/** Sealed monthly statements of accounts. */

import { defineService } from '../../../../core/contract/contract.ts';
import type { Page, PageRequest } from '../admin/pages.ts';
import type { Money } from '../money.ts';
import type { CreditMonth } from './credit-lines.ts';

export const statementForms = ['json', 'csv', 'focus'] as const;
export type StatementForm = (typeof statementForms)[number];

export interface StatementView {
  /** Its place among the account's statements, from 1 and without gaps. */
  readonly number: number;
  /** `2026-10`, of this zone. */
  readonly month: string;
  readonly zone: string;
  readonly from: number;
  readonly until: number;
  readonly opening: Money;
  readonly closing: Money;
  readonly digest: string;
  /** The digest of the statement before; undefined: it is the first. */
  readonly previous: string | undefined;
  readonly sealedAt: number;
}

/** What movements of one sort come to. */
interface StatementLine {
  readonly kind: string;
  /** The kind of a credit. */
  readonly of?: string | undefined;
  readonly project?: string | undefined;
  readonly person?: string | undefined;
  readonly model?: string | undefined;
  /** The month that they belong to, where its statement was sealed without them. */
  readonly corrects?: string | undefined;
  readonly rows: number;
  readonly amount: Money;
  /** In whole cents: with the opening balance in cents these add up to the closing one. */
  readonly usd: string;
}

export interface StatementDetail extends StatementView {
  readonly issuer: string;
  readonly rows: number;
  readonly openingUsd: string;
  readonly closingUsd: string;
  readonly lines: readonly StatementLine[];
  /** Months of a credit line that were not paid when the statement's month ended, as they were then; oldest first. */
  readonly credit: readonly CreditMonth[];
}

export interface StatementAdmin {
  /** Newest first. */
  list(accountId: string, page: PageRequest): Promise<Page<StatementView>>;
  find(accountId: string, number: number): Promise<StatementDetail | undefined>;
  /** The text of its file. Throws where what moved is not what was sealed any more. */
  file(accountId: string, number: number, form: StatementForm): AsyncGenerator<string>;
}

/** Provided by `billing` where statements are made. */
export const statementAdmin = defineService<StatementAdmin>('statement admin');
