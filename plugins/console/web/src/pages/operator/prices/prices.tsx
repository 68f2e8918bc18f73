/** The catalogue: each model's cost to the gateway and its clients, unpriced models, and a quote. */

import { Alert, Button, Text } from '@mantine/core';
import { IconAlertTriangle, IconCalculator, IconTag } from '@tabler/icons-react';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { modelKinds } from '../../../../../../common/domain/models.ts';
import { localDecimals, shareText } from '../../../parts/format.ts';
import { useClassName } from '../../../parts/known-words.ts';
import { byMaker, makerName } from '../../../parts/makers.ts';
import { Money } from '../../../parts/money.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { type SearchState, useSearchState } from '../../../parts/search-state.ts';
import { Time } from '../../../parts/time.tsx';
import { useCanEdit } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
import { ChoiceFilter, TextFilter } from '../parts/filters.tsx';
import { useAnswer } from '../parts/load.tsx';
import { ResourcePage, SideDrawer } from '../parts/resource-page.tsx';
import type { PricedModel } from '../sale-types.ts';
import { leastMargin, listPrice, mainCosts, sellsBelowCost } from '../sums/price-rows.ts';
import { isNothing } from '../sums/usd.ts';
import { Calculator } from './calculator.tsx';
import { ModelPrices } from './model-prices.tsx';

const EditEntry = lazy(() => import('../config/forms/edit-entry.tsx'));

export default function Prices() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const prices = useAnswer<{ rows: readonly PricedModel[] }>('/admin/prices');
  const canEdit = useCanEdit();
  const all = prices.data?.rows ?? [];
  const opened = all.find(({ id }) => id === search['open']);
  const unpriced = all.filter((model) => model.prices === null);
  return (
    <ResourcePage
      texts="operator.sales.prices"
      icon={IconTag}
      above={unpriced.length > 0 && <Unpriced count={unpriced.length} />}
      actions={
        <Button variant="default" leftSection={<IconCalculator size={15} />} onClick={() => change({ quote: 'yes' })}>
          {t('operator.sales.prices.calculator')}
        </Button>
      }
      filters={
        <>
          <TextFilter name="text" label={t('operator.sales.prices.search')} />
          <ChoiceFilter
            name="kind"
            label={t('shell.word.kind')}
            data={modelKinds.map((value) => ({ value, label: t(`operator.sales.prices.kind.${value}`) }))}
          />
        </>
      }
      source={{ answer: prices, pick: (rows) => shownOf(rows, search), file: 'prices' }}
      groupOf={({ prices, ownedBy }) => (prices === null ? t('operator.sales.prices.unpriced') : makerName(ownedBy))}
      columns={useColumns()}
      onOpen={({ id }) => change({ open: id })}
      drawer={{
        title: opened?.displayName ?? '',
        content: opened && (
          <ModelPrices
            model={opened}
            onEdit={canEdit ? () => change({ open: undefined, edit: opened.id }) : undefined}
          />
        ),
        onClose: () => change({ open: undefined }),
        size: 'xl',
      }}
    >
      <SideDrawer
        title={t('operator.sales.prices.calculator')}
        content={search['quote'] && <Calculator models={all} />}
        onClose={() => change({ quote: undefined })}
      />
      {canEdit && (
        <Suspense>
          <EditEntry form="prices" entry={search['edit']} onClose={() => change({ edit: undefined })} />
        </Suspense>
      )}
    </ResourcePage>
  );
}

function shownOf(rows: readonly PricedModel[], { text = '', kind, show }: SearchState): readonly PricedModel[] {
  const shown = rows
    .filter((model) => wordsOf(model).includes(text.trim().toLowerCase()))
    .filter((model) => kind === undefined || model.kind === kind)
    .filter(({ prices }) => show !== 'unpriced' || prices === null);
  // Models without a price stand on top: the operator has to act on them.
  return [...shown.filter(({ prices }) => prices === null), ...byMaker(shown.filter(({ prices }) => prices !== null))];
}

const wordsOf = ({ id, displayName, ownedBy, providers }: PricedModel) =>
  [id, displayName, ownedBy, makerName(ownedBy), ...providers].join(' ').toLowerCase();

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

function useColumns(): Column<PricedModel>[] {
  const { t, i18n } = useTranslation();
  const price = (name: string, title: string, minor = false): Column<PricedModel> => ({
    key: name,
    title,
    right: true,
    ...(minor ? { minor } : {}),
    // Nothing where it has no such price: small screens leave out empty cells.
    cell: ({ prices }) => {
      const amount = listPrice(prices, name);
      if (amount === undefined) return null;
      return isFree(prices) ? name === 'input' && t('shell.per.free') : <Money of={amount} />;
    },
    plain: ({ prices }) => listPrice(prices, name),
  });
  return [
    { key: 'model', title: t('shell.word.model'), cell: (model) => <Name of={model} />, plain: ({ id }) => id },
    price('input', t('operator.sales.prices.input')),
    price('cache_read', t('operator.sales.prices.cacheRead'), true),
    price('output', t('operator.sales.prices.output')),
    {
      key: 'piece',
      title: t('operator.sales.prices.piece'),
      right: true,
      cell: ({ prices }) => <Pieces of={prices} />,
      plain: ({ prices }) => piecesOf(prices)[0]?.yours,
    },
    {
      key: 'cost',
      title: t('operator.column.ownCost'),
      right: true,
      cell: ({ cost, costIsListPrice }) => (
        <>
          {mainCosts(cost).map((amount, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: input and output
            <span key={index}>
              {index > 0 && ' / '}
              <Money of={amount} />
            </span>
          ))}
          {costIsListPrice && (
            <Text span display="block" fz="xs" c="dimmed">
              {t('operator.sales.prices.listPrice')}
            </Text>
          )}
        </>
      ),
      plain: ({ cost }) => mainCosts(cost)[0],
    },
    {
      key: 'margin',
      title: t('operator.column.margin'),
      right: true,
      cell: (model) => <Margin of={model} />,
      plain: ({ prices, cost }) => leastMargin(prices, cost)?.percent,
    },
    {
      key: 'ratio',
      title: t('shell.word.ratio'),
      right: true,
      minor: true,
      cell: ({ prices }) => (prices === null ? '–' : localDecimals(prices.ratio, i18n.language)),
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

/** The smallest of its classes. */
function Margin({ of: { prices, cost } }: { readonly of: PricedModel }) {
  const { i18n } = useTranslation();
  const nameOf = useClassName();
  const least = leastMargin(prices, cost);
  if (least === undefined) return <span>–</span>;
  return (
    <span className="number" title={nameOf(least.class)} data-negative={least.percent < 0 || undefined}>
      {shareText(least.percent, 100, i18n.language)}
    </span>
  );
}

/** What is charged by pieces, each with its unit. */
function Pieces({ of }: { readonly of: PricedModel['prices'] }) {
  const { t } = useTranslation();
  if (isFree(of)) return null;
  return piecesOf(of).map(({ class: name, yours, per }) => (
    <div key={name}>
      <Money of={yours} />{' '}
      <Text span fz="xs" c="dimmed">
        {t(`shell.per.${per}`)}
      </Text>
    </div>
  ));
}

const piecesOf = (prices: PricedModel['prices']) =>
  prices?.lines.filter(({ per }) => per !== 'million' && per !== 'call') ?? [];

const isFree = (prices: PricedModel['prices']) =>
  prices?.lines.every(({ yours, range }) => range === null && isNothing(yours)) === true;

function Name({ of: model }: { readonly of: PricedModel }) {
  const { id, displayName } = model;
  return (
    <span title={id}>
      <Text span fz="sm" fw={550}>
        {displayName}
      </Text>{' '}
      <StateWord of={model} />
      {displayName !== id && (
        <Text span display="block" fz="xs" c="dimmed" className="mono">
          {id}
        </Text>
      )}
    </span>
  );
}

/** Where something is wrong with its price, or about to change. */
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
  return null;
}
