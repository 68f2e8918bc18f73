/** A model's prices in time: past, current and future versions. */

import { Text, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { PriceSheet } from '../../../api/types.ts';
import { textColumn } from '../../../parts/columns.tsx';
import { Money } from '../../../parts/money.tsx';
import type { Column } from '../../../parts/rows-table.tsx';
import { Time } from '../../../parts/time.tsx';
import { Word } from '../parts/badges.tsx';
import { CsvTable } from '../parts/csv-table.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import type { PriceVersion, PriceVersions } from '../sale-types.ts';

type Row = PriceVersion & { readonly of: 'sale' | 'own' };
const colors = { past: 'gray', now: 'teal', later: 'blue' } as const;

export function Versions({ model }: { readonly model: string }) {
  const { t } = useTranslation();
  const versions = useAnswer<PriceVersions>('/admin/prices/versions', { model });
  const columns = useColumns();
  return (
    <section>
      <Title order={3} fz="md">
        {t('operator.sales.prices.versions')}
      </Title>
      <Text fz="xs" c="dimmed" mb="xs">
        {t('operator.sales.prices.versionsHint')}
      </Text>
      <Loaded of={versions} height={90}>
        {({ prices, cost }) => (
          <CsvTable
            label={t('operator.sales.prices.versions')}
            rows={[
              ...prices.map((version): Row => ({ ...version, of: 'sale' })),
              ...cost.map((version): Row => ({ ...version, of: 'own' })),
            ]}
            columns={columns}
            rowKey={({ of, sheet, validFrom }) => `${of} ${sheet.version} ${validFrom ?? ''}`}
            file={`price-versions-${model.replaceAll(/[^\w.-]/g, '_')}`}
            empty={<Text c="dimmed">{t('operator.sales.prices.unpriced')}</Text>}
          />
        )}
      </Loaded>
    </section>
  );
}

function useColumns(): Column<Row>[] {
  const { t } = useTranslation();
  const always = t('operator.sales.prices.always');
  return [
    textColumn('of', t('shell.word.kind'), {
      cell: ({ of }) => t(`operator.sales.prices.${of}`),
    }),
    textColumn('state', t('shell.word.state'), {
      cell: ({ state }) => <Word color={colors[state]}>{t(`operator.sales.prices.versionState.${state}`)}</Word>,
    }),
    textColumn('validFrom', t('operator.sales.prices.validFrom'), {
      cell: ({ validFrom }) => <Time at={validFrom} absent={always} />,
    }),
    textColumn('validUntil', t('operator.sales.prices.validUntil'), {
      cell: ({ validUntil }) => <Time at={validUntil} />,
    }),
    {
      key: 'prices',
      title: t('operator.sales.prices.official'),
      cell: ({ sheet }) => <Lines of={sheet} />,
      plain: ({ sheet }) => sheet.lines.map((line) => `${line.class} ${line.official}`).join(', '),
    },
    {
      key: 'version',
      title: t('operator.traffic.requests.priceVersion'),
      minor: true,
      cell: ({ sheet }) => (
        <Text span fz="xs" className="mono wrap-any">
          {sheet.version}
        </Text>
      ),
      plain: ({ sheet }) => sheet.version,
    },
  ];
}

function Lines({ of: { lines, tiers } }: { readonly of: PriceSheet }) {
  const { t } = useTranslation();
  return (
    <Text span fz="sm">
      {lines.map((line) => (
        <span key={line.class} className="price-line">
          {line.class} <Money of={line.official} />
        </span>
      ))}
      {tiers.length > 0 && (
        <Text span fz="xs" c="dimmed">
          {t('operator.sales.prices.moreTiers', { count: tiers.length })}
        </Text>
      )}
    </Text>
  );
}
