/** One model: every class and tier with own cost and sale price, now and in its other versions. */

import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconPencil } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { countText, localDecimals } from '../../../parts/format.ts';
import { useModalities } from '../../../parts/known-words.ts';
import { useLimits } from '../../../parts/limits.ts';
import { Money } from '../../../parts/money.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { Time } from '../../../parts/time.tsx';
import { CsvTable } from '../parts/csv-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { RowLink } from '../parts/names.tsx';
import type { PricedModel } from '../sale-types.ts';
import { type PriceRow, priceRows, sellsBelowCost } from '../sums/price-rows.ts';
import { Vendors } from './vendors.tsx';
import { Versions } from './versions.tsx';

interface ModelPricesProps {
  readonly model: PricedModel;
  /** undefined: this person may not change it. */
  readonly onEdit: (() => void) | undefined;
}

export function ModelPrices({ model, onEdit }: ModelPricesProps) {
  const { t } = useTranslation();
  const { id, ownedBy, prices, cost, costIsListPrice } = model;
  return (
    <Stack>
      {prices === null && (
        <Alert
          color="red"
          variant="light"
          icon={<IconAlertTriangle size={18} />}
          title={t('operator.sales.prices.unpriced')}
        >
          {t('operator.sales.prices.unpricedHint')}
        </Alert>
      )}
      {sellsBelowCost(prices, cost) && (
        <Alert
          color="orange"
          variant="light"
          icon={<IconAlertTriangle size={18} />}
          title={t('operator.sales.prices.belowCost')}
        >
          {t('operator.sales.prices.belowCostHint')}
        </Alert>
      )}
      {onEdit !== undefined && (
        <Group>
          <Button size="xs" variant="default" leftSection={<IconPencil size={15} />} onClick={onEdit}>
            {t('operator.sales.prices.edit')}
          </Button>
        </Group>
      )}
      {costIsListPrice && (
        <Text fz="sm" c="dimmed">
          {t('operator.sales.prices.listPriceHint', { maker: ownedBy })}
        </Text>
      )}
      <ModelFacts model={model} />
      <CsvTable
        label={id}
        rows={priceRows(prices, cost)}
        columns={useColumns()}
        rowKey={(row) => `${row.tier ?? ''} ${row.class}`}
        file={`prices-${id.replaceAll(/[^\w.-]/g, '_')}`}
        empty={<Text c="dimmed">{t('operator.sales.prices.unpriced')}</Text>}
      />
      <Vendors model={id} />
      <Versions model={id} />
    </Stack>
  );
}

function ModelFacts({ model }: { readonly model: PricedModel }) {
  const { t, i18n } = useTranslation();
  const {
    id,
    ownedBy,
    prices,
    cost,
    contextTokens,
    maxOutputTokens,
    modalities,
    limits,
    providers,
    source,
    multiplier,
    changesAt,
  } = model;
  const modalitiesText = useModalities();
  const limitsOf = useLimits();
  const count = (tokens: number) => countText(tokens, i18n.language);
  return (
    <Facts
      of={[
        [
          t('shell.word.model'),
          <span key="id" className="mono">
            {id}
          </span>,
        ],
        [t('operator.sales.prices.ownedBy'), ownedBy],
        [
          t('operator.sales.prices.providers'),
          providers.map((provider) => (
            <span key={provider}>
              <RowLink to="/admin/upstreams" search={{ provider }}>
                {provider}
              </RowLink>{' '}
            </span>
          )),
        ],
        prices !== null && [t('operator.traffic.requests.priceVersion'), prices.version],
        cost !== null && [
          `${t('operator.column.ownCost')}: ${t('operator.traffic.requests.priceVersion')}`,
          cost.version,
        ],
        prices !== null && [
          t('shell.word.ratio'),
          localDecimals(`${prices.ratio}${multiplier === null ? '' : ` (${multiplier})`}`, i18n.language),
        ],
        changesAt !== null && [t('operator.sales.prices.changes'), <Time key="changes" at={changesAt} />],
        source !== null && [t('operator.sales.prices.source'), source],
        contextTokens !== null && [t('operator.sales.prices.context'), count(contextTokens)],
        maxOutputTokens !== null && [t('operator.sales.prices.maxOutput'), count(maxOutputTokens)],
        modalities.length > 0 && [t('operator.sales.prices.modalities'), modalitiesText(modalities)],
        ...limitsOf(limits),
      ]}
    />
  );
}

function useColumns(): Column<PriceRow>[] {
  const { t } = useTranslation();
  const money = (key: 'official' | 'sale' | 'cost' | 'margin', title: string, minor = false): Column<PriceRow> => ({
    key,
    title,
    right: true,
    ...(minor ? { minor } : {}),
    cell: (row) => <Money of={row[key]} signed={key === 'margin' && row[key]?.startsWith('-') === true} />,
    plain: (row) => row[key],
  });
  return [
    {
      key: 'class',
      title: t('operator.sales.prices.class'),
      cell: (row) => (
        <span>
          {row.class}{' '}
          <Text span fz="xs" c="dimmed">
            {t(`shell.per.${row.per}`)}
          </Text>
        </span>
      ),
      plain: (row) => row.class,
    },
    {
      key: 'tier',
      title: t('operator.sales.prices.tiers'),
      cell: ({ tier }) => tier ?? t('operator.sales.prices.baseTier'),
      plain: ({ tier }) => tier ?? '',
    },
    money('cost', t('operator.sales.prices.own')),
    money('official', t('operator.sales.prices.official'), true),
    money('sale', t('operator.sales.prices.sale')),
    money('margin', t('operator.column.margin')),
  ];
}
