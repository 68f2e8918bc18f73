/** One batch: its account and key, its lines by outcome, its money and files, and what a vendor makes of it; it can be cancelled. */
import { Group, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import { listKey } from '../../../parts/data-table.tsx';
import { countText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Time } from '../../../parts/time.tsx';
import { BatchState, Done } from '../../client/batches/batch-parts.tsx';
import { Faults } from '../../client/batches/faults.tsx';
import { ActButton, useActs } from '../parts/act.tsx';
import { type Fact, Facts } from '../parts/facts.tsx';
import { answerKey, Loaded, useAnswer } from '../parts/load.tsx';
import { AccountLink, RowLink, shortId } from '../parts/names.tsx';
import type { AccountKey, OperatorBatchStory, Page } from '../types.ts';

interface StoryProps {
  readonly id: string;
  /** Path of the list that shows it too. */
  readonly list: string;
}

export function BatchStory({ id, list }: StoryProps) {
  const path = `${list}/${encodeURIComponent(id)}`;
  const answer = useAnswer<OperatorBatchStory>(path, {}, 5_000);
  return (
    <Loaded of={answer} height={380}>
      {(batch) => (
        <Stack>
          <Group justify="space-between">
            <BatchState batch={batch} />
            {batch.outcome === null && batch.cancelAt === null && <Cancel id={id} path={path} list={list} />}
          </Group>
          {batch.errors.length > 0 && <Faults of={batch.errors} />}
          <What batch={batch} />
          {batch.vendor !== null && <AtVendor vendor={batch.vendor} />}
          <ItsFiles batch={batch} />
        </Stack>
      )}
    </Loaded>
  );
}

function What({ batch }: { readonly batch: OperatorBatchStory }) {
  const { t, i18n } = useTranslation();
  const withMoney = has(useMe(), 'money');
  const count = (value: number) => countText(value, i18n.language);
  const isOpen = batch.outcome === null;
  return (
    <Facts
      of={[
        [t('shell.word.account'), <AccountLink key="account" id={batch.accountId} />],
        [t('shell.word.key'), <KeyName key="key" accountId={batch.accountId} id={batch.keyId} />],
        [t('client.batches.endpoint'), <Mono key="endpoint" of={batch.endpoint} />],
        [t('client.batches.done'), <Done key="done" batch={batch} />],
        [t('client.batches.succeeded'), count(batch.succeeded)],
        [t('client.batches.errored'), count(batch.errored)],
        [t('client.batches.states.cancelled'), count(batch.cancelled)],
        [t('client.batches.states.expired'), count(batch.expired)],
        withMoney && [
          t(isOpen ? 'client.batches.costSoFar' : 'client.batches.cost'),
          batch.cost === null ? t('operator.unknown') : <Money key="cost" of={batch.cost} />,
        ],
        withMoney && Number(batch.held) > 0 && [t('client.batches.held'), <Money key="held" of={batch.held} />],
        [t('operator.column.created'), <Time key="created" at={batch.createdAt} />],
        isOpen && [t('client.batches.expires'), <Time key="expires" at={batch.expiresAt} />],
        batch.cancelAt !== null && [t('client.batches.states.cancelling'), <Time key="cancel" at={batch.cancelAt} />],
        !isOpen && [t('client.batches.ended'), <Time key="ended" at={batch.endedAt} />],
        [t('client.batches.id'), <Mono key="id" of={batch.id} />],
      ]}
    />
  );
}

function AtVendor({ vendor }: { readonly vendor: NonNullable<OperatorBatchStory['vendor']> }) {
  const { t, i18n } = useTranslation();
  const {
    provider,
    asked: requested,
    model,
    credential,
    protocol,
    state,
    lines,
    vendorId,
    orderedAt,
    cancelSent,
    result,
  } = vendor;
  const facts: readonly (Fact | false)[] = [
    [t('shell.word.provider'), provider],
    [
      t('shell.word.model'),
      requested === model ? model : t('operator.batches.vendorModel', { asked: requested, model }),
    ],
    [t('shell.word.state'), t(`operator.batches.vendorState.${state}`)],
    result !== null && [t('shell.word.result'), t(`operator.batches.vendorResult.${result}`)],
    cancelSent && result === null && ['', t('operator.batches.cancelSent')],
    lines > 0 && [t('operator.batches.lines'), countText(lines, i18n.language)],
    [t('operator.batches.ordered'), <Time key="ordered" at={orderedAt} />],
    vendorId !== null && [t('operator.batches.vendorId'), <Mono key="vendorId" of={vendorId} />],
    credential !== null && [t('shell.word.key'), credential],
    [t('shell.word.protocol'), protocol],
  ];
  return (
    <Section title={t('operator.batches.vendor')}>
      <Facts of={facts} />
    </Section>
  );
}

function ItsFiles({ batch: { inputFile, outputFile, errorFile } }: { readonly batch: OperatorBatchStory }) {
  const { t } = useTranslation();
  const link = (id: string) => (
    <RowLink key={id} to="/admin/files" search={{ open: id }}>
      <Mono of={id} />
    </RowLink>
  );
  return (
    <Section title={t('operator.batches.files')}>
      <Facts
        of={[
          [t('client.batches.input'), link(inputFile)],
          outputFile !== null && [t('client.batches.output'), link(outputFile)],
          errorFile !== null && [t('client.batches.errorFile'), link(errorFile)],
        ]}
      />
    </Section>
  );
}

function Cancel({ id, path, list }: StoryProps & { readonly path: string }) {
  const { t } = useTranslation();
  if (!useActs()) return null;
  return (
    <ActButton
      title={t('operator.batches.cancelTitle', { name: shortId(id) })}
      text={t('operator.batches.cancelText')}
      action={t('operator.batches.cancel')}
      danger
      stale={[listKey(list), answerKey(path)]}
      act={async (reason) => {
        await send('POST', `${path}/cancel`, { reason });
        return t('operator.batches.cancelled');
      }}
    />
  );
}

/** Its name, where it is among the first keys of its account. */
function KeyName({ accountId, id }: { readonly accountId: string; readonly id: string }) {
  const account = `/admin/accounts/${encodeURIComponent(accountId)}`;
  const known = has(useMe(), 'accounts');
  const keys = useAnswer<Page<AccountKey>>(`${account}/keys`, { limit: 500 }, false, known);
  const name = keys.data?.rows.find((key) => key.id === id)?.name;
  if (!known) return <Mono of={id} />;
  return (
    <RowLink to={account} search={{ tab: 'keys' }} title={id}>
      {name ?? shortId(id)}
    </RowLink>
  );
}

function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <Stack gap={6}>
      <Text fz="sm" fw={600}>
        {title}
      </Text>
      {children}
    </Stack>
  );
}

const Mono = ({ of }: { readonly of: string }) => <span className="mono">{of}</span>;
