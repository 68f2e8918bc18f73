/** Tests a vendor: the smallest real call of a model, by one of its keys, and how it went. */
import { Alert, Button, Group, Modal, Select, Stack, Text } from '@mantine/core';
import { IconCircleCheck, IconCircleX } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { countText, durationText } from '../../../parts/format.ts';
import { ErrorState } from '../../../parts/states.tsx';
import { Facts } from '../parts/facts.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import type { TestChoice, TestResult, Upstream } from '../types.ts';

interface DialogProps {
  readonly upstream: Upstream;
  readonly opened: boolean;
  readonly onClose: () => void;
}

export function TestDialog({ upstream, opened, onClose }: DialogProps) {
  const { t } = useTranslation();
  const title = t('operator.traffic.upstreams.test.title', { name: upstream.provider });
  return (
    <Modal opened={opened} onClose={onClose} title={title}>
      {opened && <Choices upstream={upstream} />}
    </Modal>
  );
}

const pathOf = ({ provider }: Upstream) => `/admin/upstreams/${encodeURIComponent(provider)}`;

function Choices({ upstream }: Pick<DialogProps, 'upstream'>) {
  const { t } = useTranslation();
  const choices = useAnswer<{ rows: readonly TestChoice[] }>(`${pathOf(upstream)}/choices`);
  return (
    <Loaded of={choices} height={200}>
      {({ rows: [first, ...others] }) =>
        first === undefined ? (
          <Text c="dimmed">{t('operator.traffic.upstreams.test.nothing')}</Text>
        ) : (
          <TestForm upstream={upstream} first={first} others={others} />
        )
      }
    </Loaded>
  );
}

interface FormProps {
  readonly upstream: Upstream;
  readonly first: TestChoice;
  readonly others: readonly TestChoice[];
}

function TestForm({ upstream, first, others }: FormProps) {
  const { t } = useTranslation();
  const credentials = upstream.keys.map((key) => key.credential);
  const [credential, setCredential] = useState(credentials[0] ?? '');
  const [model, setModel] = useState(first.model);
  const [wanted, setProtocol] = useState<string>();
  const choice = others.find((other) => other.model === model) ?? first;
  const protocol = choice.protocols.find((name) => name === wanted) ?? choice.protocols[0] ?? '';
  const test = useMutation({
    mutationFn: () => send<TestResult>('POST', `${pathOf(upstream)}/test`, { credential, model, protocol }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    test.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Text fz="sm">{t('operator.traffic.upstreams.test.text')}</Text>
        <Choice
          label={t('shell.word.model')}
          data={[first, ...others].map((other) => other.model)}
          value={model}
          onChange={setModel}
        />
        <Choice label={t('shell.word.key')} data={credentials} value={credential} onChange={setCredential} />
        {choice.protocols.length > 1 && (
          <Choice label={t('shell.word.protocol')} data={choice.protocols} value={protocol} onChange={setProtocol} />
        )}
        {test.isError && <ErrorState error={test.error} />}
        {test.data !== undefined && !test.isPending && <Outcome of={test.data} />}
        <Group justify="flex-end">
          <Button type="submit" loading={test.isPending}>
            {t('operator.traffic.upstreams.test.send')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly data: readonly string[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Choice({ label, data, value, onChange }: ChoiceProps) {
  return (
    <Select
      label={label}
      data={[...data]}
      value={value}
      allowDeselect={false}
      searchable={data.length > 8}
      onChange={(chosen) => onChange(chosen ?? value)}
    />
  );
}

function Outcome({ of }: { readonly of: TestResult }) {
  const { t, i18n } = useTranslation();
  const { ok, status, firstByteMs, totalMs, error, text, usage, upstreamModel, protocol } = of;
  const tokens = Object.entries(usage).map(([name, count]) => `${name} ${countText(count, i18n.language)}`);
  return (
    <Alert
      role="status"
      variant="light"
      color={ok ? 'teal' : 'red'}
      icon={ok ? <IconCircleCheck size={18} /> : <IconCircleX size={18} />}
      title={t(`operator.traffic.upstreams.test.${ok ? 'answers' : 'fails'}`)}
      data-testid="test-outcome"
    >
      <Facts
        of={[
          error !== null && [t('shell.word.error'), error],
          [t('operator.traffic.upstreams.test.status'), status ?? t('operator.traffic.upstreams.test.noStatus')],
          [t('shell.word.firstByte'), durationText(firstByteMs)],
          [t('operator.traffic.upstreams.test.total'), durationText(totalMs)],
          text !== '' && [t('operator.traffic.upstreams.test.said'), text],
          tokens.length > 0 && [t('operator.traffic.upstreams.test.used'), tokens.join(' · ')],
          [t('operator.traffic.upstreams.test.asked'), `${upstreamModel} · ${protocol}`],
        ]}
      />
    </Alert>
  );
}
