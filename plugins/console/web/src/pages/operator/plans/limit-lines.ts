/** What a plan allows, in words. Pure. */
import type { TFunction } from 'i18next';
import { countText } from '../../../parts/format.ts';
import type { Plan } from '../types.ts';

export function limitLines({ limits }: Pick<Plan, 'limits'>, t: TFunction, language: string): string[] {
  return (['rpm', 'rpd', 'tpm', 'concurrency'] as const).flatMap((name) => {
    const count = limits[name];
    return count === null ? [] : [t(`client.wallet.${name}`, { count, number: countText(count, language) })];
  });
}
