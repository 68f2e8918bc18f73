/** Turns the second factor on and off: password, picture for the authenticator, a code that proves it, backup codes. */
import { Badge, Button, Code, Group, Modal, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { QRCodeSVG } from 'qrcode.react';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { beginSecond, confirmSecond, endSecond } from '../../api/auth.ts';
import { ApiError } from '../../api/client.ts';
import { meQuery, queries, usePerson } from '../../api/session.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Panel } from '../../parts/page.tsx';
import { SecretOnce } from '../../parts/secret-once.tsx';
import { useErrorText } from '../../parts/states.tsx';

type Step =
  | { readonly at: 'password' }
  | { readonly at: 'scan'; readonly uri: string; readonly codes: readonly string[] }
  | { readonly at: 'codes'; readonly codes: readonly string[] };

export function SecondFactor() {
  const { t } = useTranslation();
  const { twoFactor } = usePerson();
  const [step, setStep] = useState<Step>();
  const shut = () => {
    setStep(undefined);
    void queries.invalidateQueries({ queryKey: meQuery.queryKey });
  };
  return (
    <Panel
      title={
        <Group gap="xs">
          {t('entry.second.title')}
          <Badge size="sm" radius="sm" variant="light" color={twoFactor ? 'teal' : 'gray'}>
            {t(twoFactor ? 'client.profile.secondOn' : 'client.profile.secondOff')}
          </Badge>
        </Group>
      }
      hint={t('client.profile.secondHint')}
    >
      <Button variant="default" onClick={() => setStep({ at: 'password' })}>
        {t(twoFactor ? 'client.profile.turnOff' : 'client.profile.turnOn')}
      </Button>
      <Modal
        opened={step?.at === 'password' || step?.at === 'scan'}
        onClose={shut}
        title={t(twoFactor ? 'client.profile.turnOff' : 'entry.second.title')}
      >
        {step?.at === 'password' && <AskPassword on={twoFactor} onStep={setStep} onOff={shut} />}
        {step?.at === 'scan' && <Scan {...step} onStep={setStep} />}
      </Modal>
      <SecretOnce
        title={t('client.profile.backup')}
        secret={step?.at === 'codes' ? step.codes.join('\n') : undefined}
        onSaved={shut}
      >
        <Text fz="sm" c="dimmed">
          {t('client.profile.backupHint')}
        </Text>
      </SecretOnce>
    </Panel>
  );
}

interface AskPasswordProps {
  readonly on: boolean;
  readonly onStep: (step: Step) => void;
  readonly onOff: () => void;
}

function AskPassword({ on, onStep, onOff }: AskPasswordProps) {
  const { t } = useTranslation();
  const textOf = useErrorText();
  const [password, setPassword] = useState('');
  const [problem, setProblem] = useState<string>();
  const go = async (event: FormEvent) => {
    event.preventDefault();
    try {
      if (on) {
        await endSecond(password);
        onOff();
        return;
      }
      const { totpURI, backupCodes } = await beginSecond(password);
      onStep({ at: 'scan', uri: totpURI, codes: backupCodes });
    } catch (error) {
      setProblem(textOf(error));
    }
  };
  return (
    <form onSubmit={(event) => void go(event)}>
      <Stack>
        <Text fz="sm">{t(on ? 'client.profile.turnOffWords' : 'client.profile.confirm')}</Text>
        <PasswordInput
          label={t('client.profile.current')}
          autoComplete="current-password"
          data-autofocus
          required
          withAsterisk={false}
          value={password}
          error={problem}
          onChange={({ currentTarget }) => setPassword(currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button type="submit" color={on ? 'red' : undefined}>
            {t(on ? 'client.profile.turnOff' : 'client.profile.turnOn')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface ScanProps {
  readonly uri: string;
  readonly codes: readonly string[];
  readonly onStep: (step: Step) => void;
}

function Scan({ uri, codes, onStep }: ScanProps) {
  const { t } = useTranslation();
  const textOf = useErrorText();
  const [code, setCode] = useState('');
  const [problem, setProblem] = useState<string>();
  const secret = new URL(uri).searchParams.get('secret') ?? '';
  const go = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await confirmSecond(code.replace(/\s/g, ''));
      onStep({ at: 'codes', codes });
    } catch (error) {
      const wrong = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
      setProblem(wrong ? t('client.profile.codeWrong') : textOf(error));
    }
  };
  return (
    <form onSubmit={(event) => void go(event)}>
      <Stack>
        <Text fz="sm">{t('client.profile.scan')}</Text>
        <Group justify="center" className="qr">
          <QRCodeSVG value={uri} size={184} marginSize={2} title={t('client.profile.qr')} />
        </Group>
        <Text fz="xs" c="dimmed" component="div">
          {t('client.profile.manual')}
          <Group gap={4} wrap="nowrap">
            <Code className="breaks">{secret}</Code>
            <CopyButton text={secret} />
          </Group>
        </Text>
        <TextInput
          label={t('entry.second.code')}
          inputMode="numeric"
          autoComplete="one-time-code"
          required
          withAsterisk={false}
          value={code}
          error={problem}
          onChange={({ currentTarget }) => setCode(currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button type="submit">{t('shell.confirm')}</Button>
        </Group>
      </Stack>
    </form>
  );
}
