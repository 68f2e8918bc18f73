/** What a call will cost: exact, from the lowest to the highest price, or by the unit where only the answer decides. */
import { Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get } from '../../../api/client.ts';
import type { ModelRow, OrderQuote } from '../../../api/types.ts';
import { exactMoneyText } from '../../../parts/format.ts';
import { MainPrice } from '../../../parts/price.tsx';

/** Pieces by class, and words of size and quality. */
export interface OrderCounts {
  readonly image?: number;
  readonly second?: number;
  readonly character?: number;
  readonly audio?: number;
  readonly search?: number;
  readonly media?: string;
}

export function PriceBefore({ model, counts }: { readonly model: ModelRow; readonly counts: OrderCounts | undefined }) {
  const { t, i18n } = useTranslation();
  const { data } = useQuery({
    queryKey: ['models', 'quote', model.id, counts],
    queryFn: ({ signal }) => get<OrderQuote>('/models/quote', { model: model.id, ...counts }, signal),
    enabled: counts !== undefined,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
  const amount = (usd: string) => exactMoneyText(usd, i18n.language);
  const { least = null, most = null } = (counts !== undefined && data) || {};
  if (least === null || most === null)
    return model.prices === null ? null : (
      <Text span fz="sm" c="dimmed" data-testid="price">
        <MainPrice sheet={model.prices} kind={model.kind} />
      </Text>
    );
  const price =
    least === most ? amount(least) : t('client.playground.between', { least: amount(least), most: amount(most) });
  return (
    <span data-testid="price">
      {t('client.playground.price')} <b className="number">{price}</b>
    </span>
  );
}
