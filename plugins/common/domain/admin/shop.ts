/** The console's contract: the service that manages redeem codes and plans on offer. */

import { defineService } from '../../../../core/contract/contract.ts';
import type { Money } from '../money.ts';
import type { PlanOffer } from '../plans.ts';
import type { Page, PageRequest } from './pages.ts';

export type CodeGift =
  | { readonly kind: 'balance'; readonly amount: Money; readonly lastsMs: number | undefined }
  | { readonly kind: 'plan'; readonly plan: string }
  | { readonly kind: 'days'; readonly plan: string; readonly days: number };

export interface CodeView {
  readonly id: string;
  readonly prefix: string;
  readonly batch: string;
  readonly gift: CodeGift;
  readonly maxUses: number;
  readonly uses: number;
  readonly oncePerAccount: boolean;
  readonly expiresAt: number | undefined;
  readonly revokedAt: number | undefined;
  readonly createdAt: number;
}

export interface ShopAdmin {
  /** Plans that can be bought. */
  offers(): readonly PlanOffer[];
  codes(filter: { readonly batch?: string | undefined }, page: PageRequest): Promise<Page<CodeView>>;
  batches(): Promise<
    readonly { readonly batch: string; readonly codes: number; readonly uses: number; readonly createdAt: number }[]
  >;
  /** The codes are returned only here. */
  createCodes(wanted: {
    readonly batch: string | undefined;
    readonly gift: CodeGift;
    readonly count: number;
    readonly maxUses: number;
    readonly oncePerAccount: boolean;
    readonly expiresAt: number | undefined;
  }): Promise<{ readonly batch: string; readonly codes: readonly string[] }>;
  /** Who has redeemed a code, the latest first. */
  redemptions(codeId: string, page: PageRequest): Promise<Page<{ readonly accountId: string; readonly at: number }>>;
  /** An id or a batch. Resolves with how many were revoked. */
  revokeCodes(named: string): Promise<number>;
}

export const shopAdmin = defineService<ShopAdmin>('shop admin');
