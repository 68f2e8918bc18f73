/** The frame of a form that makes one call: fields, the price before it, a button; below them the result. */
import { Box, Button, Group, Stack, Text } from '@mantine/core';
import { IconPlayerPlayFilled, IconPlayerStopFilled } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { KeyboardEvent, ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../../../api/client.ts';
import type { ModelRow, OrderQuote } from '../../../api/types.ts';
import type { ApiCall } from '../../../calls/call.ts';
import { durationText, exactMoneyText } from '../../../parts/format.ts';
import { Panel } from '../../../parts/page.tsx';
import { MainPrice } from '../../../parts/price.tsx';
import { AsCode } from './as-code.tsx';
import { Bench, type KindProps } from './bench.tsx';
import { Measures } from './measures.tsx';
import { Refused } from './problem.tsx';
import type { Run } from './use-run.ts';

interface RunFormProps extends KindProps<ModelRow> {
  readonly run: Run<unknown>;
  /** As it would be sent now. */
  readonly call: ApiCall;
  /** Whether nothing is missing but, perhaps, the key. */
  readonly isWhole: boolean;
  /** The usage that is known before the call. */
  readonly counts?: OrderCounts;
  readonly onRun: () => void;
  /** Choices beside the model and the key. */
  readonly options?: ReactNode;
  readonly fields: ReactNode;
  /** The result, or its progress. */
  readonly children: ReactNode;
}

export function RunForm({ model, apiKey, head, run, call, isWhole, counts, onRun, options, ...parts }: RunFormProps) {
  const { t } = useTranslation();
  const ready = apiKey !== '' && isWhole && !run.busy;
  const onKeyDown = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    // A field of one line would submit the form as well.
    event.preventDefault();
    event.currentTarget.requestSubmit();
  };
  return (
    <Bench
      settings={
        <>
          {head}
          {options}
        </>
      }
      measures={
        (run.busy || run.requestId !== undefined) && (
          <Measures
            facts={[[t('shell.word.wholeAnswer'), durationText(run.totalMs)]]}
            requestId={run.requestId}
            busy={run.busy}
          />
        )
      }
    >
      <Panel>
        <form
          onKeyDown={onKeyDown}
          onSubmit={(event) => {
            event.preventDefault();
            if (ready) onRun();
          }}
        >
          <Stack gap="sm">
            {parts.fields}
            <Group justify="space-between" gap="sm">
              <Box fz="sm" aria-live="polite">
                <PriceBefore model={model} counts={counts} />
                {apiKey === '' && (
                  <Text fz="xs" c="dimmed">
                    {t('client.playground.keyMissing')}
                  </Text>
                )}
              </Box>
              {run.busy ? (
                <Button variant="default" leftSection={<IconPlayerStopFilled size={14} />} onClick={run.stop}>
                  {t('client.playground.stop')}
                </Button>
              ) : (
                <Button type="submit" leftSection={<IconPlayerPlayFilled size={14} />} disabled={!ready}>
                  {t('client.playground.run')}
                </Button>
              )}
            </Group>
          </Stack>
        </form>
      </Panel>
      {run.problem !== undefined && <Refused problem={run.problem} />}
      {parts.children}
      <AsCode call={call} apiKey={apiKey} />
    </Bench>
  );
}

/** Pieces by class, and words of size and quality. */
interface OrderCounts {
  readonly image?: number;
  readonly second?: number;
  readonly character?: number;
  readonly audio?: number;
  readonly search?: number;
  readonly media?: string;
}

function PriceBefore({ model, counts }: { readonly model: ModelRow; readonly counts: OrderCounts | undefined }) {
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
