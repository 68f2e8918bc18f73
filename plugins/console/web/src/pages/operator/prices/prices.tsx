/** The catalogue: what each model costs the gateway and its clients, what has no price, and what a request would cost. */
import { Alert, Button, Drawer, Text } from '@mantine/core';
import { IconAlertTriangle, IconCalculator, IconTag } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { Money } from '../../../parts/money.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { Word } from '../parts/badges.tsx';
import { type CsvColumn, CsvTable } from '../parts/csv-table.tsx';
import { ChoiceFilter, FilterBar, TextFilter } from '../parts/filters.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import type { PricedModel } from '../sale-types.ts';
import { listPrice, sellsBelowCost } from '../sums/price-rows.ts';
import { Calculator } from './calculator.tsx';
import { ModelPrices } from './model-prices.tsx';

const kinds = ['chat', 'image', 'video'] as const;

export default function Prices() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const prices = useAnswer<{ rows: readonly PricedModel[] }>('/admin/prices');
  const all = prices.data?.rows ?? [];
  const opened = all.find(({ id }) => id === search['open']);
  return (
    <Page
      title={t('operator.sales.prices.title')}
      hint={t('operator.sales.prices.intro')}
      actions={
        <Button variant="default" leftSection={<IconCalculator size={15} />} onClick={() => change({ quote: 'yes' })}>
          {t('operator.sales.prices.calculator')}
        </Button>
      }
    >
      <Loaded of={prices} height={420}>
        {({ rows }) => <Catalogue rows={rows} />}
      </Loaded>
      <Drawer
        opened={opened !== undefined}
        onClose={() => change({ open: undefined })}
        title={opened?.displayName ?? ''}
        size="xl"
      >
        {opened !== undefined && <ModelPrices model={opened} />}
      </Drawer>
      <Drawer
        opened={search['quote'] !== undefined}
        onClose={() => change({ quote: undefined })}
        title={t('operator.sales.prices.calculator')}
      >
        {search['quote'] !== undefined && <Calculator models={all} />}
      </Drawer>
    </Page>
  );
}

function Catalogue({ rows }: { readonly rows: readonly PricedModel[] }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const columns = useColumns();
  const unpriced = rows.filter(({ prices }) => prices === null);
  const text = (search['text'] ?? '').toLowerCase();
  const shown = rows
    .filter(({ id, displayName, ownedBy }) => `${id} ${displayName} ${ownedBy}`.toLowerCase().includes(text))
    .filter(({ kind }) => search['kind'] === undefined || kind === search['kind'])
    .filter(({ prices }) => search['show'] !== 'unpriced' || prices === null)
    // What has no price stands on top: it is what somebody must do something about.
    .sort((left, right) => Number(left.prices !== null) - Number(right.prices !== null));
  return (
    <>
      {unpriced.length > 0 && <Unpriced count={unpriced.length} />}
      <Panel flush>
        <FilterBar>
          <TextFilter name="text" label={t('operator.sales.prices.search')} />
          <ChoiceFilter
            name="kind"
            label={t('operator.column.kind')}
            data={kinds.map((value) => ({ value, label: t(`operator.sales.prices.kind.${value}`) }))}
          />
        </FilterBar>
        <CsvTable
          label={t('operator.sales.prices.title')}
          rows={shown}
          columns={columns}
          rowKey={({ id }) => id}
          file="prices"
          onOpen={({ id }) => change({ open: id })}
          empty={
            <EmptyState
              icon={IconTag}
              title={t('operator.sales.prices.empty')}
              hint={t('operator.sales.prices.emptyHint')}
            />
          }
        />
      </Panel>
    </>
  );
}

function Unpriced({ count }: { readonly count: number }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const alone = search['show'] === 'unpriced';
  return (
    <Alert
      color="red"
      variant="light"
      icon={<IconAlertTriangle size={18} />}
      title={t('operator.sales.prices.unpricedCount', { count })}
    >
      {t('operator.sales.prices.unpricedHint')}{' '}
      <Button
        size="compact-xs"
        variant="default"
        ml="xs"
        onClick={() => change({ show: alone ? undefined : 'unpriced' })}
      >
        {alone ? t('operator.sales.prices.showAll') : t('operator.sales.prices.showUnpriced')}
      </Button>
    </Alert>
  );
}

function useColumns(): CsvColumn<PricedModel>[] {
  const { t } = useTranslation();
  const price = (name: string, title: string, minor = false): CsvColumn<PricedModel> => ({
    key: name,
    title,
    right: true,
    ...(minor ? { minor } : {}),
    // Nothing where it has no such price: small screens leave out what is empty.
    cell: ({ prices }) => {
      const amount = listPrice(prices, name);
      return amount === undefined ? null : <Money of={amount} />;
    },
    plain: ({ prices }) => listPrice(prices, name),
  });
  return [
    { key: 'model', title: t('operator.column.model'), cell: (model) => <Name of={model} />, plain: ({ id }) => id },
    {
      key: 'state',
      title: t('operator.column.state'),
      cell: (model) => <StateWord of={model} />,
      plain: ({ prices }) => (prices === null ? 'unpriced' : 'priced'),
    },
    price('input', t('operator.sales.prices.input')),
    price('cache_read', t('operator.sales.prices.cacheRead'), true),
    price('output', t('operator.sales.prices.output')),
    price('image', t('operator.sales.prices.kind.image')),
    price('second', t('operator.sales.prices.second')),
    {
      key: 'ratio',
      title: t('operator.sales.prices.ratio'),
      right: true,
      minor: true,
      cell: ({ prices }) => prices?.ratio ?? '–',
      plain: ({ prices }) => prices?.ratio,
    },
    {
      key: 'providers',
      title: t('operator.sales.prices.providers'),
      minor: true,
      cell: ({ providers }) => providers.join(', ') || '–',
      plain: ({ providers }) => providers.join(' '),
    },
  ];
}

function Name({ of: { id, displayName } }: { readonly of: PricedModel }) {
  return (
    <span>
      {displayName}
      {displayName !== id && (
        <Text span display="block" fz="xs" c="dimmed" className="mono">
          {id}
        </Text>
      )}
    </span>
  );
}

/** Whether it is sold, and whether that is about to change. */
function StateWord({ of: model }: { readonly of: PricedModel }) {
  const { t } = useTranslation();
  return (
    <span>
      <SoldWord of={model} />{' '}
      {model.changesAt !== null && (
        <Text span fz="xs" c="dimmed">
          {t('operator.sales.prices.changes')} <Time at={model.changesAt} />
        </Text>
      )}
    </span>
  );
}

function SoldWord({ of: { prices, cost } }: { readonly of: PricedModel }) {
  const { t } = useTranslation();
  if (prices === null) return <Word color="red">{t('operator.sales.prices.unpriced')}</Word>;
  if (sellsBelowCost(prices, cost)) return <Word color="orange">{t('operator.sales.prices.belowCost')}</Word>;
  return <Word color="teal">{t('operator.sales.prices.sold')}</Word>;
}
