/** What a request would be charged by the prices as they are edited; the gateway does the sum. */

import { Fieldset, Group, NumberInput, Select, SimpleGrid, Stack, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ModelKind } from '../../../../../../../../common/domain/models.ts';
import { send } from '../../../../../api/client.ts';
import { localFormula } from '../../../../../parts/format.ts';
import { useClassName } from '../../../../../parts/known-words.ts';
import { Money } from '../../../../../parts/money.tsx';
import { useErrorText } from '../../../../../parts/states.tsx';
import type { PriceExample } from '../../../sale-types.ts';
import { useForms } from '../context.ts';
import type { Path } from '../edit-yaml.ts';
import { namesAt, valueAt, wholeAt } from '../layers.ts';
import { isOfTokens, usualClasses } from './model-kinds.ts';

const tokens = new Map([
  ['input', 10_000],
  ['output', 1_000],
]);

/** The initial usage: a usual prompt with its answer, one piece, a thousand of anything else. */
function usualCount(name: string): number {
  if (isOfTokens(name)) return tokens.get(name) ?? 0;
  return name === 'character' ? 1_000 : name === 'audio' ? 60 : 1;
}

export function Example({ at, kind }: { readonly at: Path; readonly kind: ModelKind }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const nameOf = useClassName();
  const [counts, setCounts] = useState<ReadonlyMap<string, number>>(new Map());
  const [service, setService] = useState<string | null>(null);
  const price = wholeAt(layers, [...at, 'price']);
  const written = namesAt(layers, [...at, 'price']);
  const services = namesAt(layers, [...at, 'price', 'service']);
  const multiplier = valueAt(layers, [...at, 'multiplier']);
  const classes = usualClasses[kind].filter((one) => written.length === 0 || written.includes(one));
  const countOf = (one: string) => counts.get(one) ?? usualCount(one);
  const requested = {
    price,
    cost: wholeAt(layers, [...at, 'cost']),
    ...(typeof multiplier === 'string' ? { multiplier } : {}),
    ...(service !== null && services.includes(service) ? { service } : {}),
    usage: Object.fromEntries(classes.map((one) => [one, countOf(one)])),
  };
  const answer = useExample(requested);
  if (price === undefined) return null;
  return (
    <Fieldset legend={t('operator.config.forms.example')}>
      <Stack gap="sm">
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
          {classes.map((one) => (
            <NumberInput
              key={one}
              label={
                one === 'audio'
                  ? t('operator.config.forms.exampleSeconds')
                  : t('operator.config.forms.exampleCount', { name: nameOf(one) })
              }
              min={0}
              max={1_000_000_000}
              allowDecimal={false}
              thousandSeparator=","
              value={countOf(one)}
              onChange={(value) => setCounts(new Map(counts).set(one, typeof value === 'number' ? value : 0))}
            />
          ))}
          {services.length > 0 && (
            <Select
              label={t('operator.config.forms.exampleService')}
              data={[...services]}
              value={service}
              clearable
              placeholder={t('operator.config.forms.standard')}
              onChange={setService}
            />
          )}
        </SimpleGrid>
        <Answer answer={answer.data} error={answer.error} />
      </Stack>
    </Fieldset>
  );
}

/** The gateway's sum, a moment after the last change. */
function useExample(requested: { readonly price: unknown }) {
  const [settled] = useDebouncedValue(JSON.stringify(requested), 300);
  return useQuery({
    queryKey: ['price example', settled],
    queryFn: () => send<PriceExample>('POST', '/admin/prices/example', JSON.parse(settled) as object),
    placeholderData: keepPreviousData<PriceExample | undefined>,
    retry: false,
    gcTime: 30_000,
    enabled: requested.price !== undefined,
  });
}

function Answer({ answer, error }: { readonly answer: PriceExample | undefined; readonly error: unknown }) {
  const { t, i18n } = useTranslation();
  const textOf = useErrorText();
  if (error !== null && error !== undefined)
    return (
      <Text fz="sm" c="red" role="alert">
        {textOf(error)}
      </Text>
    );
  if (answer === undefined) return null;
  return (
    <div role="status" data-testid="price-example">
      <Group gap="md" align="baseline">
        <Text fz="lg" fw={650}>
          <Money of={answer.cost} exact />
        </Text>
        <Text fz="sm" c="dimmed">
          {answer.tier === '' ? t('operator.config.forms.standard') : answer.tier}
        </Text>
        {answer.ownCost !== null && (
          <Text fz="sm" c="dimmed">
            {t('operator.column.ownCost')}: <Money of={answer.ownCost} exact />
          </Text>
        )}
      </Group>
      <div className="formula">{localFormula(answer.formula, i18n.language)}</div>
    </div>
  );
}
