/** What a request would cost now: a model and counts in, the sum and its formula out. */
import { Alert, Button, NumberInput, Select, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { localFormula } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { ErrorState } from '../../../parts/states.tsx';
import type { PricedModel, Quote } from '../sale-types.ts';
import { isRatio } from '../sums/usd.ts';

/** Classes that are asked for where a model states no prices of its own. */
const usual = ['input', 'output'];

export function Calculator({ models }: { readonly models: readonly PricedModel[] }) {
  const { t } = useTranslation();
  const [model, setModel] = useState<string | null>(models.find(({ prices }) => prices !== null)?.id ?? null);
  const [counts, setCounts] = useState<Readonly<Record<string, number>>>({ input: 1_000, output: 500 });
  const [ratio, setRatio] = useState('');
  const quote = useMutation({
    mutationFn: (body: object) => send<Quote>('POST', '/admin/prices/quote', body),
  });
  const lines = models.find(({ id }) => id === model)?.prices?.lines.map((line) => line.class) ?? usual;
  const usage = Object.fromEntries(lines.flatMap((name) => (counts[name] ? [[name, counts[name]]] : [])));
  const isEmpty = Object.keys(usage).length === 0;
  const ratioFine = ratio.trim() === '' || isRatio(ratio);
  const ask = (event: FormEvent) => {
    event.preventDefault();
    if (model === null || isEmpty || !ratioFine) return;
    quote.mutate({ model, usage, ...(ratio.trim() === '' ? {} : { ratio: ratio.trim() }) });
  };
  return (
    <form onSubmit={ask}>
      <Stack>
        <Text fz="sm" c="dimmed">
          {t('operator.sales.prices.calculatorHint')}
        </Text>
        <Select
          label={t('shell.word.model')}
          searchable
          allowDeselect={false}
          data={models.map(({ id, prices }) => ({ value: id, label: id, disabled: prices === null }))}
          value={model}
          onChange={setModel}
        />
        <SimpleGrid cols={2} spacing="xs">
          {lines.map((name) => (
            <NumberInput
              key={name}
              label={name}
              min={0}
              max={1_000_000_000}
              allowDecimal={false}
              thousandSeparator=","
              value={counts[name] ?? ''}
              onChange={(value) => setCounts({ ...counts, [name]: typeof value === 'number' ? value : 0 })}
            />
          ))}
        </SimpleGrid>
        <TextInput
          label={t('operator.sales.prices.ratioOnTop')}
          description={t('operator.sales.prices.ratioHint')}
          inputMode="decimal"
          value={ratio}
          error={ratioFine ? undefined : t('operator.ask.ratioWrong')}
          onChange={({ currentTarget }) => setRatio(currentTarget.value)}
        />
        {isEmpty && (
          <Text fz="xs" c="dimmed">
            {t('operator.sales.prices.nothing')}
          </Text>
        )}
        <Button type="submit" loading={quote.isPending} disabled={model === null || isEmpty}>
          {t('operator.sales.prices.work')}
        </Button>
        {quote.isError && <ErrorState error={quote.error} />}
        {quote.data !== undefined && <Answer quote={quote.data} />}
      </Stack>
    </form>
  );
}

function Answer({ quote: { cost, ownCost, formula } }: { readonly quote: Quote }) {
  const { t, i18n } = useTranslation();
  return (
    <Alert variant="light" role="status" data-testid="quote">
      <Text fz="xl" fw={650}>
        <Money of={cost} />
      </Text>
      <Text fz="sm" c="dimmed">
        {ownCost === null ? (
          t('operator.sales.prices.quoteNoOwn')
        ) : (
          <>
            {t('operator.column.ownCost')}: <Money of={ownCost} />
          </>
        )}
      </Text>
      <div className="formula">{localFormula(formula, i18n.language)}</div>
    </Alert>
  );
}
