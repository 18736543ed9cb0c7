import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
import { AppModule } from './app.module.js'

async function start(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule.forEnvironment(process.env), {
    logger: ['error', 'warn'],
  })
  app.enableShutdownHooks([], { useProcessExit: process.env['USE_PROCESS_EXIT'] !== undefined })
  process.stdout.write(`${JSON.stringify({ ready: process.pid })}\n`)
}

void start()
