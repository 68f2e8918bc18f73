/** One sealed statement, on the screen and on paper, with its files and how they are checked. */
import { Anchor, Button, Code, Group, Stack, Table, Text } from '@mantine/core';
import { IconArrowLeft, IconDownload, IconPrinter } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get, linkTo } from '../../api/client.ts';
import type { StatementDetail } from '../../api/types.ts';
import { countText } from '../../parts/format.ts';
import { useGrantKind } from '../../parts/known-words.ts';
import { Money } from '../../parts/money.tsx';
import { Panel } from '../../parts/page.tsx';
import { ErrorState, Waiting } from '../../parts/states.tsx';
import { CreditMonths } from '../credit-line/credit-line.tsx';
import './statements.css';

const forms = ['json', 'csv', 'focus'] as const;

interface StatementProps {
  readonly path: string;
  readonly onBack: () => void;
}

export function Statement({ path, onBack }: StatementProps) {
  const { t } = useTranslation();
  const found = useQuery({
    queryKey: ['statement', path],
    queryFn: () => get<StatementDetail>(path),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const { data, error } = found;
  return (
    <Stack gap="md">
      <Group justify="space-between" gap="xs" className="not-printed">
        <Anchor component="button" fz="sm" onClick={onBack}>
          <IconArrowLeft size={13} aria-hidden /> {t('client.statements.back')}
        </Anchor>
        {data !== undefined && <Files path={path} />}
      </Group>
      {data === undefined ? (
        error === null ? (
          <Waiting />
        ) : (
          <ErrorState error={error} onRetry={() => void found.refetch()} />
        )
      ) : (
        <Paper of={data} />
      )}
    </Stack>
  );
}

function Files({ path }: { readonly path: string }) {
  const { t } = useTranslation();
  return (
    <Group gap="xs">
      {forms.map((form) => (
        <Button
          key={form}
          component="a"
          href={linkTo(`${path}/file`, { format: form })}
          download
          size="xs"
          variant="default"
          leftSection={<IconDownload size={14} />}
        >
          {t(`client.statements.${form}`)}
        </Button>
      ))}
      <Button size="xs" variant="default" leftSection={<IconPrinter size={14} />} onClick={() => window.print()}>
        {t('client.statements.print')}
      </Button>
    </Group>
  );
}

function Paper({ of }: { readonly of: StatementDetail }) {
  const { t } = useTranslation();
  const { number, month, zone, issuer, digest, previous, credit } = of;
  return (
    <>
      <Panel
        flush
        title={`${t('client.statements.named', { number })} · ${month}`}
        hint={`${issuer} · ${t('client.statements.zone', { zone })}`}
      >
        <Lines of={of} />
      </Panel>
      {credit.length > 0 && (
        <Panel title={t('client.statements.due')} hint={t('client.statements.dueHint')}>
          <CreditMonths of={credit} exact />
        </Panel>
      )}
      <Panel title={t('client.statements.verify')}>
        <Stack gap="xs">
          <Text fz="sm">{t('client.statements.verifyWords')}</Text>
          <Code block>{`model-gateway statements verify statement-${month}.jsonl`}</Code>
          <Digest name={t('client.statements.digest')} of={digest} />
          {previous !== null && <Digest name={t('client.statements.previous')} of={previous} />}
        </Stack>
      </Panel>
    </>
  );
}

const Digest = ({ name, of }: { readonly name: string; readonly of: string }) => (
  <Text fz="xs" className="wrap-any">
    {name}: <span className="mono">{of}</span>
  </Text>
);

/** The cents add up as they stand, and so do the exact amounts beside them. */
function Lines({ of }: { readonly of: StatementDetail }) {
  const { t, i18n } = useTranslation();
  const { opening, closing, openingUsd, closingUsd, lines } = of;
  return (
    <Table.ScrollContainer minWidth={560}>
      <Table aria-label={t('client.statements.line')}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('client.statements.line')}</Table.Th>
            <Table.Th>{t('client.statements.project')}</Table.Th>
            <Table.Th>{t('client.statements.person')}</Table.Th>
            <Table.Th ta="right">{t('client.statements.count')}</Table.Th>
            <Table.Th ta="right">{t('client.statements.amount')}</Table.Th>
            <Table.Th ta="right">{t('client.statements.exact')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          <Balance name={t('client.statements.opening')} usd={openingUsd} exact={opening} />
          {lines.map((line) => (
            <Table.Tr key={keyOf(line)}>
              <Table.Td>
                <What line={line} />
              </Table.Td>
              <Table.Td>{line.projectName ?? (line.project || '–')}</Table.Td>
              <Table.Td className="wrap-any">{line.personName || line.person || '–'}</Table.Td>
              <Table.Td ta="right">{countText(line.rows, i18n.language)}</Table.Td>
              <Amounts usd={line.usd} exact={line.amount} />
            </Table.Tr>
          ))}
          <Balance name={t('client.statements.closing')} usd={closingUsd} exact={closing} />
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

type Line = StatementDetail['lines'][number];
const keyOf = ({ kind, of, project, person, model, corrects }: Line) =>
  JSON.stringify([kind, of, project, person, model, corrects]);

const kinds = ['CREDIT', 'DEBIT', 'PURCHASE', 'REFUND', 'PAYOUT', 'EXPIRE', 'CHARGE'] as const;

function What({ line }: { readonly line: Line }) {
  const { t } = useTranslation();
  const kindOf = useGrantKind();
  const known = kinds.find((one) => one === line.kind);
  const kind = known === undefined ? line.kind : t(`shell.ledger.kinds.${known}`);
  const named = [kind, line.of === null ? line.model : kindOf(line.of)].filter(Boolean).join(' · ');
  return line.corrects === null ? named : t('client.statements.corrects', { kind: named, month: line.corrects });
}

interface AmountsProps {
  readonly usd: string;
  readonly exact: string;
}

const Amounts = ({ usd, exact }: AmountsProps) => (
  <>
    <Table.Td ta="right">
      <Money of={usd} exact />
    </Table.Td>
    <Table.Td ta="right">
      <Money of={exact} exact />
    </Table.Td>
  </>
);

const Balance = ({ name, usd, exact }: AmountsProps & { readonly name: string }) => (
  <Table.Tr fw={600}>
    <Table.Td colSpan={4}>{name}</Table.Td>
    <Amounts usd={usd} exact={exact} />
  </Table.Tr>
);
